// What harness.py is for Python, for JavaScript.
export const URL_ = process.env.PODIUM_URL;
export const V1 = `${URL_}/v1`;
export const BLUE = 'Say only blue';
export const [NAME, RECALL] = ['My name is Ada.', 'What is my name?'];
export const WEATHER = 'How is the weather in Oslo?';
export const TOWN = 'name the town: Oslo';
export const UNKNOWN = 'nobody';
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
export const getWeather = ({ town }) => `snow in ${town}`;
export const TOWN_SCHEMA = {
  type: 'object',
  properties: { town: { type: 'string' } },
  required: ['town'],
  additionalProperties: false,
};

export async function run(features) {
  const found = {};
  for (const [name, feature] of Object.entries(features)) {
    try {
      found[name] = String(await feature());
    } catch (error) {
      found[name] = `ERROR ${error.name}: ${error.message}`;
    }
  }
  console.log(JSON.stringify(found));
}

// OpenAI for JavaScript: chat completions, or the Responses API (PODIUM_FACE=responses).
import OpenAI from 'openai';
import { BLUE, NAME, PIXEL, RECALL, TOWN, TOWN_SCHEMA, UNKNOWN, V1, WEATHER, getWeather, run } from './harness.mjs';

const client = new OpenAI({ baseURL: V1, apiKey: 'x', maxRetries: 0 });
const WEATHER_TOOL = { name: 'get_weather', description: 'The weather in a town.', parameters: TOWN_SCHEMA };

const chat = {
  ask: (messages, options) => client.chat.completions.create({
    model: 'podium',
    messages: typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages,
    ...options,
  }),
  text: async (...given) => (await chat.ask(...given)).choices[0].message.content,
  streamed: async (messages, options) => {
    let text = '';
    for await (const chunk of await chat.ask(messages, { ...options, stream: true })) text += chunk.choices[0]?.delta.content ?? '';
    return text;
  },
  tools: [{ type: 'function', function: WEATHER_TOOL }],
};

async function chatLoop(stream) {
  const runner = client.chat.completions.runTools({
    model: 'podium',
    stream,
    messages: [{ role: 'user', content: WEATHER }],
    tools: [{ type: 'function', function: { ...WEATHER_TOOL, function: getWeather, parse: JSON.parse } }],
  });
  return runner.finalContent();
}

async function chatSecondTurn() {
  const history = [{ role: 'user', content: NAME }, { role: 'assistant', content: await chat.text(NAME) }];
  return chat.text([...history, { role: 'user', content: RECALL }]);
}

const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } };

const responses = {
  ask: (input, options) => client.responses.create({ model: 'podium', input, ...options }),
  text: async (...given) => (await responses.ask(...given)).output_text,
  tools: [{ type: 'function', strict: true, ...WEATHER_TOOL }],
};

async function events(input, options) {
  let text = '';
  let last;
  for await (const event of await responses.ask(input, { ...options, stream: true })) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    last = event.response ?? last;
  }
  return { text, last };
}

async function responsesLoop(ask) {
  const first = await ask(WEATHER, { tools: responses.tools });
  const call = first.output.find((item) => item.type === 'function_call');
  const output = { type: 'function_call_output', call_id: call.call_id, output: getWeather(JSON.parse(call.arguments)) };
  const second = await ask([output], { tools: responses.tools, previous_response_id: first.id });
  return second.output.find((item) => item.type === 'message').content[0].text;
}

const faces = {
  chat: {
    text: () => chat.text(BLUE),
    stream: () => chat.streamed(BLUE),
    'second turn': chatSecondTurn,
    tools: () => chatLoop(false),
    'streamed tools': () => chatLoop(true),
    'JSON schema': async () => {
      const format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: TOWN_SCHEMA } };
      return JSON.parse(await chat.text(TOWN, { response_format: format })).town;
    },
    image: () => chat.text([{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] }]),
    thoughts: async () =>
      (await chat.ask('Think.', { model: 'quill', reasoning_effort: 'low' })).choices[0].message.reasoning_content,
    'unknown model': () => chat.text(BLUE, { model: UNKNOWN }),
  },
  responses: {
    text: () => responses.text(BLUE),
    stream: async () => (await events(BLUE)).text,
    'second turn': async () => responses.text(RECALL, { previous_response_id: (await responses.ask(NAME)).id }),
    tools: () => responsesLoop(responses.ask),
    'streamed tools': () => responsesLoop(async (...given) => (await events(...given)).last),
    'JSON schema': async () => {
      const format = { type: 'json_schema', name: 'place', strict: true, schema: TOWN_SCHEMA };
      return JSON.parse(await responses.text(TOWN, { text: { format } })).town;
    },
    image: () => responses.text([{
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: picture.image_url.url, detail: 'auto' },
      ],
    }]),
    thoughts: async () => {
      const done = await responses.ask('Think.', { model: 'quill', reasoning: { effort: 'low', summary: 'auto' } });
      return done.output.find((item) => item.type === 'reasoning').summary[0].text;
    },
    'unknown model': () => responses.text(BLUE, { model: UNKNOWN }),
  },
};
await run(faces[process.env.PODIUM_FACE ?? 'chat']);

// Anthropic for JavaScript: messages.
import Anthropic from '@anthropic-ai/sdk';
import { BLUE, NAME, PIXEL, RECALL, TOWN_SCHEMA, UNKNOWN, URL_, WEATHER, getWeather, run } from './harness.mjs';

const client = new Anthropic({ baseURL: URL_, apiKey: 'x', maxRetries: 0 });
const tools = [{ name: 'get_weather', description: 'The weather in a town.', input_schema: TOWN_SCHEMA }];
const body = (messages, options) => ({
  model: 'podium',
  max_tokens: 500,
  messages: typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages,
  ...options,
});
const ask = (...given) => client.messages.create(body(...given));
const streamed = (...given) => client.messages.stream(body(...given)).finalMessage();
const text = (message) => message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');

async function loop(once) {
  const messages = [{ role: 'user', content: WEATHER }];
  const called = await once(messages, { tools });
  const call = called.content.find((block) => block.type === 'tool_use');
  const result = { type: 'tool_result', tool_use_id: call.id, content: getWeather(call.input) };
  messages.push({ role: 'assistant', content: called.content }, { role: 'user', content: [result] });
  return text(await once(messages, { tools }));
}

await run({
  text: async () => text(await ask(BLUE)),
  stream: async () => text(await streamed(BLUE)),
  'second turn': async () => {
    const history = [{ role: 'user', content: NAME }, { role: 'assistant', content: text(await ask(NAME)) }];
    return text(await ask([...history, { role: 'user', content: RECALL }]));
  },
  tools: () => loop(ask),
  'streamed tools': () => loop(streamed),
  image: async () => {
    const source = { type: 'base64', media_type: 'image/png', data: PIXEL };
    return text(await ask([{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, { type: 'image', source }] }]));
  },
  thoughts: async () => {
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    const done = await ask('Think.', { model: 'quill', max_tokens: 3000, thinking });
    return done.content.find((block) => block.type === 'thinking').thinking;
  },
  'unknown model': () => ask(BLUE, { model: UNKNOWN }),
});

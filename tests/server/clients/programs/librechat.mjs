// LibreChat: its package for agents, which sends what a person writes into its page. It always streams.
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Providers, Run } from '@librechat/agents';
import { z } from 'zod';
import { BLUE, NAME, PIXEL, RECALL, UNKNOWN, V1, WEATHER, getWeather, run } from './harness.mjs';

const weather = tool(async (input) => getWeather(input), {
  name: 'get_weather',
  description: 'The weather in a town.',
  schema: z.object({ town: z.string() }),
});

async function content(messages, { model = 'podium', tools = [], ...options } = {}) {
  const client = { apiKey: 'x', maxRetries: 0, configuration: { baseURL: V1 } };
  const llmConfig = { provider: Providers.OPENAI, model, streaming: true, ...client, ...options };
  const runId = crypto.randomUUID();
  const graphConfig = { type: 'standard', llmConfig, tools };
  const conversation = await Run.create({ runId, graphConfig, returnContent: true });
  const config = { runId, streamMode: 'values', version: 'v2', configurable: { thread_id: runId } };
  return await conversation.processStream({ messages }, config);
}

const parts = (content, type) => content.map((part) => part[type] ?? '').join('');
const person = (text) => [new HumanMessage(text)];
const said = async (messages, options) => parts(await content(messages, options), 'text');

await run({
  stream: () => said(person(BLUE)),
  'second turn': async () => {
    const first = await said(person(NAME));
    return await said([...person(NAME), new AIMessage(first), ...person(RECALL)]);
  },
  'streamed tools': () => said(person(WEATHER), { tools: [weather] }),
  image: () => {
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } };
    return said([new HumanMessage({ content: [{ type: 'text', text: 'What is this?' }, picture] })]);
  },
  thoughts: async () => {
    const reasoning = { effort: 'low' };
    return parts(await content(person('Think.'), { model: 'quill', reasoning }), 'think');
  },
  'unknown model': () => said(person(BLUE), { model: UNKNOWN }),
});
process.exit(0);

// Vercel's AI SDK: its responses, chat and Anthropic models (PODIUM_FACE).
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, getWeather, run } from './harness.mjs';

const openai = createOpenAI({ baseURL: V1, apiKey: 'x' });
const faces = {
  responses: (name) => openai(name),
  chat: (name) => openai.chat(name),
  anthropic: createAnthropic({ baseURL: V1, apiKey: 'x' }),
};
const face = process.env.PODIUM_FACE;
const named = faces[face];
const given = { model: named('podium'), maxRetries: 0 };
const tools = {
  get_weather: tool({
    description: 'The weather in a town.',
    inputSchema: z.object({ town: z.string() }),
    execute: async (input) => getWeather(input),
  }),
};
const loop = { ...given, prompt: WEATHER, tools, stopWhen: stepCountIs(4) };

async function collected(stream) {
  let text = '';
  for await (const piece of stream.textStream) text += piece;
  return text;
}

const features = {
  text: async () => (await generateText({ ...given, prompt: BLUE })).text,
  stream: () => collected(streamText({ ...given, prompt: BLUE })),
  'second turn': async () => {
    const messages = [{ role: 'user', content: NAME }];
    const first = await generateText({ ...given, messages });
    const history = [...messages, ...first.response.messages, { role: 'user', content: RECALL }];
    return (await generateText({ ...given, messages: history })).text;
  },
  tools: async () => (await generateText(loop)).text,
  'streamed tools': () => collected(streamText(loop)),
  'JSON schema': async () => {
    const output = Output.object({ schema: z.object({ town: z.string() }) });
    return (await generateText({ ...given, prompt: TOWN, output })).output.town;
  },
  image: async () => {
    const content = [{ type: 'text', text: 'What is this?' }, { type: 'image', image: PIXEL, mediaType: 'image/png' }];
    return (await generateText({ ...given, messages: [{ role: 'user', content }] })).text;
  },
  'unknown model': async () => (await generateText({ ...given, model: named(UNKNOWN), prompt: BLUE })).text,
};
if (face === 'completion') for (const name of ['tools', 'streamed tools', 'JSON schema', 'image']) delete features[name];
await run(features);

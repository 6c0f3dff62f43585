/** Declares the settings of [limits]: how much, how long, and how many at a time. */

import { type Rows, seconds } from '../kit/settings.ts'

const budget = { project: 'stricter', absent: 'no limit' } as const
const tokens = { type: 'whole', min: 1, max: 1_000_000_000_000, unit: 'tokens', ...budget } as const
const usd = { type: 'number', min: 0, max: 1_000_000, unit: 'US dollars', ...budget } as const

export const limitRows = {
  max_tool_rounds: {
    type: 'whole',
    min: 1,
    max: 1000,
    unit: 'rounds',
    default: 5,
    work: 100,
    project: 'free',
    about: 'Rounds of tool calls in one turn.',
  },
  max_same_results: {
    type: 'whole',
    min: 2,
    max: 1000,
    unit: 'times',
    work: 5,
    project: 'stricter',
    absent: 'no limit',
    about:
      'A turn ends when the same call gave the same result this many times and nothing new was changed in between: the model goes round in circles.',
  },
  max_response_bytes: {
    type: 'whole',
    min: 1024,
    max: 100_000_000,
    unit: 'bytes',
    default: 1_000_000,
    project: 'free',
    about: 'The longest body accepted from a provider or by the http tool.',
  },
  tool_timeout_s: { ...seconds, default: 30, project: 'free', about: 'A tool call is ended after this time.' },
  shell_timeout_s: {
    ...seconds,
    default: 15,
    work: 120,
    project: 'free',
    about: 'A command, with all its children, is ended after this time, unless the call asks for another ("timeout").',
  },
  shell_timeout_max_s: {
    ...seconds,
    default: 600,
    project: 'stricter',
    about: 'The longest time that a call may ask for its command.',
  },
  http_timeout_s: { ...seconds, default: 20, project: 'free', about: 'A request of the http tool is ended after this time.' },
  max_output_bytes: {
    type: 'whole',
    min: 256,
    max: 10_000_000,
    unit: 'bytes',
    default: 65_536,
    project: 'free',
    about:
      "The longest output of a tool the model sees, if an eighth of the model's window is not less; what is cut off is said, and result_read reads on.",
  },
  max_result_bytes: {
    type: 'whole',
    min: 256,
    max: 100_000_000,
    unit: 'bytes',
    default: 16_777_216,
    project: 'free',
    about: 'The longest output of a tool that is kept whole for result_read; of a longer one the beginning and the end.',
  },
  context_tokens: {
    type: 'whole',
    min: 0,
    max: 10_000_000,
    unit: 'tokens',
    absent: "128,000, or two fifths of the model's context window where that is less",
    project: 'free',
    example: 128_000,
    about: 'How much of the earlier conversation goes along with a question; never more than two fifths of the window.',
  },
  max_turns_at_once: {
    type: 'whole',
    min: 1,
    max: 10_000,
    unit: 'turns',
    default: 256,
    about: 'Turns under way in one process at a time; further ones wait in the order in which they came.',
  },
  max_parallel: { type: 'whole', min: 1, max: 64, unit: 'calls', default: 4, project: 'free', about: 'Tool calls in flight at a time.' },
  max_run_seconds: { ...seconds, project: 'stricter', absent: 'no limit', example: 600, about: 'Budget of one turn: wall clock.' },
  max_run_tokens: { ...tokens, example: 200_000, about: 'Budget of one turn: tokens in and out.' },
  max_run_usd: { ...usd, example: 1, about: 'Budget of one turn: money. Needs the prices of the model.' },
  max_conversation_tokens: { ...tokens, example: 2_000_000, about: 'Budget of one conversation, as long as it lasts: tokens.' },
  max_conversation_usd: { ...usd, example: 5, about: 'Budget of one conversation: money.' },
  agent_daily_tokens: { ...tokens, example: 100_000, about: 'Budget of each agent for a day in UTC: tokens.' },
  agent_daily_usd: { ...usd, example: 5, about: 'Budget of each agent for a day in UTC: money.' },
  channel_daily_tokens: {
    ...tokens,
    example: 200_000,
    about: 'Budget of each channel (cli, filter, discord, http …) for a day in UTC: tokens.',
  },
  channel_daily_usd: { ...usd, example: 5, about: 'Budget of each channel for a day in UTC: money.' },
  token_daily_tokens: { ...tokens, example: 200_000, about: 'Budget of each access token of the HTTP channel for a day in UTC: tokens.' },
  token_daily_usd: { ...usd, example: 5, about: 'Budget of each access token for a day in UTC: money.' },
  daily_tokens: { ...tokens, example: 1_000_000, about: 'Budget of this home for a day in UTC, all its processes together: tokens.' },
  daily_usd: { ...usd, example: 10, about: 'Budget of this home for a day in UTC: money.' },
} as const satisfies Rows

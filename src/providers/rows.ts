/** Defines the rows of [providers.models.NAME] that several kinds share. */

import { type Rows, seconds } from '../kit/settings.ts'

export const model = { type: 'text', about: "The model's name, as the provider spells it." } as const

export const totalTimeout = { ...seconds, default: 600, about: 'Give up on one model call after this long.' } as const

const price = {
  type: 'number',
  min: 0,
  max: 100_000,
  unit: 'US dollars per million tokens',
  absent: "of the model's facts (docs/cost.md), else unknown",
} as const

export const prices = {
  price_input: { ...price, about: 'Price of what is sent.' },
  price_output: { ...price, about: 'Price of what is answered.' },
  price_cached: { ...price, absent: 'as price_input', about: 'Price of what is sent and was cached.' },
  price_cache_write: { ...price, absent: 'as price_input', about: 'Price of what is sent and is kept in the cache from now on.' },
} as const satisfies Rows

/** The rows of a model's table in models.toml; see docs/cost.md. */
export const factRows = {
  context_tokens: { type: 'whole', min: 1024, max: 10_000_000, unit: 'tokens', about: 'The context window.' },
  max_output_tokens: { type: 'whole', min: 1, max: 10_000_000, unit: 'tokens', about: 'The longest answer.' },
  ...prices,
  sees: { type: 'words', form: 'tool', about: 'What it can see, such as "text" and "image".' },
  reasons: { type: 'boolean', about: 'Whether it reasons before it answers.' },
} as const satisfies Rows

/** How much a model reasons before it answers: the words of all vendors, from least to most. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

/** The rows of all providers that use HTTP. */
export const wireRows = {
  model: { ...model, required: true },
  base_url: { type: 'url', absent: "the vendor's address", about: 'Where the API is, without the last part of the path (…/v1).' },
  api_key_env: {
    type: 'text',
    form: 'variable',
    absent: 'no key is sent',
    about: 'The NAME of the environment variable that holds the API key. The key itself never stands in this file.',
  },
  stream: {
    type: 'boolean',
    default: true,
    about: 'Ask for the answer in pieces; a terminal shows them as they come, a pipe gets each reply whole.',
  },
  idle_timeout_s: { ...seconds, default: 60, about: 'Give up when nothing arrives for this long.' },
  total_timeout_s: totalTimeout,
  max_retries: { type: 'whole', min: 0, max: 10, unit: 'retries', default: 2, about: 'Further attempts after a failure that may pass.' },
  max_concurrent: {
    type: 'whole',
    min: 1,
    max: 1000,
    unit: 'calls',
    default: 16,
    about: 'Model calls at once with one address and key, for all conversations of a process; further ones wait in the order of coming.',
  },
  max_output_tokens: {
    type: 'whole',
    min: 1,
    max: 10_000_000,
    unit: 'tokens',
    absent: "the provider's own",
    about: 'The longest answer of one model call.',
  },
  context_tokens: {
    type: 'whole',
    min: 1024,
    max: 10_000_000,
    unit: 'tokens',
    absent:
      "of the model's facts (docs/cost.md), else what its server says (docs/context.md), else openai 128,000, anthropic 200,000, openai-compatible 32,768",
    about:
      "The model's context window: the most tokens of a request and its answer together. A refusal for length can prove that it is smaller.",
  },
  temperature: {
    type: 'number',
    min: 0,
    max: 2,
    unit: 'of 2',
    absent: "the provider's own",
    about: 'How much chance there is in the answer.',
  },
  effort: {
    type: 'choice',
    values: efforts,
    absent: "the provider's own",
    about: 'How much it reasons before it answers (docs/models.md).',
  },
  ...prices,
} as const satisfies Rows

/** The rows of the provider that needs no network. */
export const mockRows = {
  model: { ...model, default: 'mock' },
  fixture: {
    type: 'path',
    relative: true,
    absent: 'the offline helper',
    about:
      'A JSON file of scripted answers; a relative path starts at the folder of the config file. BRAIDCLAW_MOCK_FIXTURE sets it for every mock.',
  },
  total_timeout_s: totalTimeout,
  ...prices,
} as const satisfies Rows

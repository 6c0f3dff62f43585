/** [providers.models.NAME]: who answers, and how it is asked. */

import { seedModel } from '../../providers/fifo/payload.ts'
import { providerKinds, wireKinds as wire } from '../config.ts'
import { type Setting, seconds } from '../setting.ts'

const priced = ['mock', ...wire] as const
const named = ['mock', ...wire, 'stub', 'fifo'] as const
const waiting = [...priced, 'fifo'] as const
const price = { type: 'number', min: 0, max: 100_000, unit: 'US dollars per million tokens', kinds: priced, absent: 'unknown' } as const

export const providers: readonly Setting[] = [
  { key: 'providers.models.*.kind', type: 'choice', values: providerKinds, required: providerKinds, about: 'What the provider is.' },
  {
    key: 'providers.models.*.model',
    type: 'text',
    form: 'any',
    kinds: named,
    required: wire,
    byKind: { mock: 'mock', stub: 'stub', fifo: seedModel },
    about: "The model's name, as the provider spells it.",
  },
  {
    key: 'providers.models.*.base_url',
    type: 'url',
    kinds: wire,
    required: ['openai-compatible'],
    absent: "the vendor's address",
    about: 'Where the API is, without the last part of the path (…/v1).',
  },
  {
    key: 'providers.models.*.api_key_env',
    type: 'text',
    form: 'variable',
    kinds: wire,
    byKind: { anthropic: 'ANTHROPIC_API_KEY', openai: 'OPENAI_API_KEY' },
    absent: 'no key is sent',
    about: 'The NAME of the environment variable that holds the API key. The key itself never stands in this file.',
  },
  {
    key: 'providers.models.*.fixture',
    type: 'path',
    relative: true,
    kinds: ['mock'],
    absent: 'the offline helper',
    about:
      'A JSON file of scripted answers; a relative path starts at the folder of the config file. BRAIDCLAW_MOCK_FIXTURE sets it for every mock.',
  },
  {
    key: 'providers.models.*.providers',
    type: 'words',
    form: 'provider',
    filled: true,
    kinds: ['reliable'],
    required: ['reliable'],
    about: 'The providers to try, in this order.',
  },
  {
    key: 'providers.models.*.routes',
    type: 'map',
    kinds: ['router'],
    required: ['router'],
    about: 'Which provider answers which hint: { cheap = "local", hard = "openai" }.',
  },
  {
    key: 'providers.models.*.default',
    type: 'text',
    form: 'provider',
    kinds: ['router'],
    required: ['router'],
    about: 'The provider for a request without a hint, or with one that has no route.',
  },
  {
    key: 'providers.models.*.stream',
    type: 'boolean',
    default: true,
    kinds: wire,
    about: 'Ask for the answer in pieces; a terminal shows them as they come, a pipe gets each reply whole.',
  },
  { key: 'providers.models.*.idle_timeout_s', ...seconds, default: 60, kinds: wire, about: 'Give up when nothing arrives for this long.' },
  {
    key: 'providers.models.*.total_timeout_s',
    ...seconds,
    default: 600,
    kinds: waiting,
    about: 'Give up on one model call after this long.',
  },
  {
    key: 'providers.models.*.dir',
    type: 'path',
    default: '/tmp/planckclaw',
    kinds: ['fifo'],
    about: 'The folder with the FIFOs brain_in and brain_out, whose other ends are the model (docs/daemon.md).',
  },
  {
    key: 'providers.models.*.max_retries',
    type: 'whole',
    min: 0,
    max: 10,
    unit: 'retries',
    default: 2,
    kinds: wire,
    about: 'Further attempts after a failure that may pass.',
  },
  {
    key: 'providers.models.*.max_concurrent',
    type: 'whole',
    min: 1,
    max: 1000,
    unit: 'calls',
    default: 16,
    kinds: wire,
    about: 'Model calls at once with one address and key, for all conversations of a process; further ones wait in the order of coming.',
  },
  {
    key: 'providers.models.*.max_output_tokens',
    type: 'whole',
    min: 1,
    max: 10_000_000,
    unit: 'tokens',
    kinds: wire,
    absent: "the provider's own",
    about: 'The longest answer of one model call.',
  },
  {
    key: 'providers.models.*.context_tokens',
    type: 'whole',
    min: 1024,
    max: 10_000_000,
    unit: 'tokens',
    kinds: wire,
    absent: 'openai 128,000, anthropic 200,000, openai-compatible 32,768',
    about: "The model's context window: what limits.context_tokens follows where that is not set.",
  },
  {
    key: 'providers.models.*.temperature',
    type: 'number',
    min: 0,
    max: 2,
    unit: 'of 2',
    kinds: wire,
    absent: "the provider's own",
    about: 'How much chance there is in the answer.',
  },
  { key: 'providers.models.*.price_input', ...price, about: 'Price of what is sent.' },
  { key: 'providers.models.*.price_output', ...price, about: 'Price of what is answered.' },
  { key: 'providers.models.*.price_cached', ...price, about: 'Price of what is sent and was cached.' },
]

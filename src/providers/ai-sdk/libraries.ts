/** Lists the protocols that the vendor's own library handles, one row each, and imports the library with the first request. */

import type { LanguageModelV4 } from '@ai-sdk/provider'
import { repairMessages } from '../repair/messages.ts'
import type { StreamRepair } from '../repair/repair.ts'
import { repairResponses } from '../repair/responses.ts'
import type { WireKind } from '../wire/provider-settings.ts'
import type { Marks } from './library-prompt.ts'
import type { Delta } from './merge-deltas.ts'

export type LibraryKind = Exclude<WireKind, 'openai-compatible'>

type Build = {
  readonly baseURL: string
  readonly apiKey: string
  readonly model: string
  readonly fetch: typeof globalThis.fetch
}

export type Library = {
  readonly marks: Marks
  /** Identifies an event with plain text in this protocol. */
  readonly delta: Delta
  /** Creates a repairer of the server's events for the library; each reply needs its own. */
  repair(): StreamRepair
  model(build: Build): Promise<LanguageModelV4>
}

const cacheHere = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const

export const libraries: { readonly [kind in LibraryKind]: Library } = {
  anthropic: {
    // Two fixed breakpoints and the automatic one at the end; eager tool streaming would trade valid arguments for speed.
    marks: { call: { anthropic: { ...cacheHere.anthropic, toolStreaming: false } }, prefixEnd: cacheHere },
    delta: { within: '"type":"text_delta"', key: '"text":"' },
    repair: repairMessages,
    async model({ baseURL, apiKey, model, fetch }) {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ baseURL, apiKey, fetch }).languageModel(model)
    },
  },
  openai: {
    // The vendor stores nothing: reasoning arrives encrypted, and we send it again.
    marks: { call: { openai: { store: false } } },
    delta: { within: '"type":"response.output_text.delta"', key: '"delta":"' },
    repair: repairResponses,
    async model({ baseURL, apiKey, model, fetch }) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ baseURL, apiKey, fetch }).responses(model)
    },
  },
}

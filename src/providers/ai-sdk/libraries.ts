/** The wires that are spoken by their vendor's own library, one row each; the library is imported with the first request. */

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
  /** What a piece of plain text looks like on this wire. */
  readonly delta: Delta
  /** What a server sends is put right for the library; one for each reply. */
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
    // Nothing is kept over there: reasoning comes back encrypted and is sent along again.
    marks: { call: { openai: { store: false } } },
    delta: { within: '"type":"response.output_text.delta"', key: '"delta":"' },
    repair: repairResponses,
    async model({ baseURL, apiKey, model, fetch }) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ baseURL, apiKey, fetch }).responses(model)
    },
  },
}

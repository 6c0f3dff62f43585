/** Builds the options of a filter call: no tools unless the caller names some, and none of our own prompt text. */

import type { ConversationOptions, Setup } from '../api.ts'

export type FilterRequest = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly setup: Setup
  /** Empty: no system prompt. With tools it replaces our first sentence, and the prompt still explains the gate. */
  readonly system: string
  /** The same text as for the flag --tools. */
  readonly tools?: string
}

/** @throws FailureError `usage` when a named tool does not exist */
export async function filterOptions({ setup, system, tools, ...common }: FilterRequest) {
  if (tools === undefined) return { ...common, tools: { builtIn: [] }, systemPrompt: system }
  const { parseToolsOption } = await import('../toolset/tools-option.ts')
  return { ...common, tools: parseToolsOption(setup, tools), ...(system.trim() === '' ? {} : { soul: system }) }
}

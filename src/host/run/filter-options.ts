/** What a filter call wants of a conversation: no tools unless they are named, and nothing of our own words before the question. */

import type { ConversationOptions, Setup } from '../api.ts'

export type FilterRequest = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly setup: Setup
  /** Empty: none. With tools it stands in place of our own first sentence, and how the gate works is still said. */
  readonly system: string
  /** As --tools names them. */
  readonly tools?: string
}

/** @throws FailureError usage when tools are named that are not there */
export async function filterOptions({
  setup,
  system,
  tools,
  ...common
}: FilterRequest): Promise<Omit<ConversationOptions, 'channel' | 'setup'>> {
  if (tools === undefined) return { ...common, tools: { builtIn: [] }, systemPrompt: system }
  const { parseToolsOption } = await import('../toolset/tools-option.ts')
  return { ...common, tools: parseToolsOption(setup, tools), ...(system.trim() === '' ? {} : { soul: system }) }
}

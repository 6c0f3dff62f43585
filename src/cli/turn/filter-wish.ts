/** What a filter call wants of the animal: no tools unless they are named, and nothing of our own words before the question. */

import { sessionOf } from '../agents/mirror.ts'
import type { Persona } from '../agents/persona.ts'
import type { AgentFlags } from '../routes/types.ts'
import type { Setup, Wish } from '../world.ts'
import { acceptance, conversationOf } from './turn.ts'

export type FilterAsk = {
  readonly setup: Setup
  readonly persona: Persona
  /** Empty: none. With tools it stands in place of our own first sentence, and how the gate works is still said. */
  readonly system: string
  /** As --tools names them. */
  readonly tools?: string
  readonly flags: Pick<AgentFlags, 'continue' | 'resume' | 'acceptAltered' | 'sandbox'>
}

/** @throws CliExit 2 when two conversations are named, or tools that are not there */
export async function filterWish({ setup, persona, system, tools, flags }: FilterAsk): Promise<Omit<Wish, 'channel'>> {
  const conversation = conversationOf(flags, () => sessionOf(persona))
  const common = { conversation, ...acceptance(flags) }
  if (tools === undefined) return { ...common, tools: { builtIn: [] }, systemPrompt: system }
  const { toolWishOf } = await import('../tools/tool-wish.ts')
  return { ...common, tools: toolWishOf(setup, tools), ...(system.trim() === '' ? {} : { soul: system }) }
}

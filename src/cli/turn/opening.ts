/** What stands before the prompt of a run, asked afresh each time: the conversation so far, the tools that are there now, the system prompt. */

import type { Memory } from '../../memory/db.ts'
import type { Opening } from '../../runtime/agent.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { systemPrompt } from '../../runtime/prompt.ts'
import { inWords } from '../records/records.ts'
import { mindWorkspace } from '../setup/workspace.ts'
import { offered } from '../tools/offered.ts'
import { builtInSpecs, type Hands, hasTools, specOf, type ToolWish } from '../tools/toolbox.ts'
import type { Past, Setup, Wish } from '../world.ts'

export type OpeningOptions = {
  readonly setup: Setup
  readonly memory: Memory
  readonly conversationId: string
  readonly wish: Wish
  /** As it was found. */
  readonly workspace: string
  /** Those of the wish, or the standing ones. */
  readonly tools: ToolWish
  readonly hands: () => Promise<Hands>
}

export type Openings = {
  /** @throws CliExit when memory cannot be read, or the workspace is gone */
  next(): Promise<Opening>
  /** Whether the conversation is so long that its beginning is due for a summary. */
  isLong(): boolean
}

export function createOpenings(options: OpeningOptions): Openings {
  const { setup, wish, workspace } = options
  const { config } = setup
  const state = { begun: wish.conversation.kind !== 'new', long: false, runs: 0 }

  function ownPast(): Past {
    const isFirst = !state.begun
    state.begun = true
    if (isFirst) return { history: [] }
    const { messages, turns } = history(options)
    state.long = (turns + 1) * 2 > config.memory.historyMax
    return { history: messages }
  }

  async function past(): Promise<Past> {
    try {
      return await (wish.past ? wish.past() : ownPast())
    } catch (error) {
      throw inWords(options.memory, error)
    }
  }

  /** That the shell is missing is said once: a program that stays would say it before every run. */
  async function tools(): Promise<readonly ToolSpec[]> {
    const log = state.runs > 1 ? () => {} : setup.log
    return offered(await specs(options), { sandbox: wish.sandbox, log })
  }

  return {
    async next() {
      state.runs += 1
      if (hasTools(options.tools)) mindWorkspace(config)
      const { history, soul = wish.soul, systemPrompt: words = wish.systemPrompt } = await past()
      const { autonomy } = config.security
      return {
        history,
        tools: await tools(),
        systemPrompt: words ?? systemPrompt({ workspace, autonomy, ...(soul ? { soul } : {}) }),
      }
    },
    isLong: () => state.long,
  }
}

async function specs({ setup, tools, hands }: OpeningOptions): Promise<readonly ToolSpec[]> {
  if (!tools.more) return builtInSpecs(tools, setup.config.channels.cli.toolsAllow)
  return (await (await hands()).refresh()).map(specOf)
}

/** The last whole turns that fit; what does not fit is said, to the model and in the log. */
function history({ memory, conversationId, setup: { config, log } }: OpeningOptions) {
  const { messages, omittedTurns } = memory.context(conversationId, config.limits.contextTokens)
  const turns = messages.filter(({ role }) => role === 'user').length + omittedTurns
  if (omittedTurns === 0) return { messages, turns }
  log('info', 'context trimmed', { conversation: conversationId, omittedTurns })
  const content = `[${omittedTurns} earlier turns of this conversation are not shown here; memory_search finds them]`
  return { messages: [{ role: 'user' as const, content }, ...messages], turns }
}

/** `agent`: a conversation in the terminal, or one turn. */

import { personHere, tellOn } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import type { Conversing } from '../../../channels/terminal/conversation-loop.ts'
import { turn } from '../../../channels/terminal/run-turn.ts'
import { withConversation } from '../../../host/open-host.ts'
import type { Speaker } from '../../../host/setup/agent-profile.ts'
import { setUpKept } from '../../../host/setup/setup-kept.ts'
import { sayWhere } from '../../../host/setup/workspace-folder.ts'
import { acceptance, conversationOf, formatOf } from '../../args/conversation-flags.ts'
import { messageOf } from '../../args/message-text.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { introduce } from '../../offline-notice.ts'
import type { AgentFlags } from '../../routes/types.ts'

export async function agent(this: CliContext, flags: AgentFlags): Promise<void> {
  const { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium } = flags
  const setup = await setUpKept(this, { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium })
  if (!setup.config.channels.cli.enabled)
    throw new CliExit(exitCodes.error, 'error: [channels.cli] enabled = false; this channel is switched off')
  const speaker =
    setup.config.defaultAgent === undefined ? undefined : await (await import('../../../host/setup/agent-profile.ts')).speakerOf(setup)
  const message = await messageOf({ message: flags.message, advice }, this)
  introduce(setup)
  sayWhere(setup)
  if (message === undefined)
    return (await import('../../../channels/terminal/conversation-loop.ts')).converse(
      conversingOf({ setup, flags, ...(speaker ? { speaker } : {}) }),
    )
  const exitCode = await oneTurn({ setup, flags, ...(speaker ? { speaker } : {}) }, message)
  if (exitCode !== 0) throw new CliExit(exitCode)
}

const advice = 'pass -m "message", pipe text in, or run it in a terminal for a conversation'

type Talk = { readonly setup: CliSetup; readonly flags: AgentFlags; readonly speaker?: Speaker }

async function oneTurn({ setup, flags, speaker }: Talk, prompt: string): Promise<number> {
  const ask = personHere(setup.context)
  const which = conversationOf(flags, speaker?.session)
  const format = formatOf(flags)
  const tell = format === 'text' ? { tell: tellOn(setup.context) } : {}
  const options = { setup, which, channel: 'cli', ...(ask ? { ask } : {}), ...tell, ...speaker?.wish, ...acceptance(flags) }
  return withConversation(options, async (conversation) => {
    const common = { conversation, setup, format, prompt, sayUsage: true }
    return await turn({ ...common, ...(ask ? { ask } : {}) })
  })
}

function conversingOf({ setup, flags, speaker }: Talk): Conversing {
  if (formatOf(flags) !== 'text') throw new CliExit(exitCodes.usage, 'error: a conversation is text; for JSON pass a message with -m')
  const { workspace, agent, autonomy, maxTurns, approveAllMedium } = flags
  return {
    setup,
    settings: { workspace, agent, autonomy, maxTurns, approveAllMedium },
    conversation: conversationOf(flags, speaker?.session),
    ...acceptance(flags),
    ...(speaker ? { speaker } : {}),
  }
}

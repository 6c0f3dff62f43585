/** Converts the flags of a turn to its conversation choice, its options and its output format. */

import type { OutputFormat } from '../../channels/terminal/render.ts'
import type { ConversationRequest } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { TurnFlags } from './turn-flags.ts'

/**
 * `session` returns the conversation that `-c` continues for a named agent. @throws FailureError `usage` when the flags name two
 * conversations.
 */
export function conversationOf(
  { continue: latest = false, resume }: Pick<TurnFlags, 'continue' | 'resume'>,
  session?: () => ConversationRequest['conversation'],
): ConversationRequest['conversation'] {
  if (latest && resume !== undefined) throw new FailureError('usage', '--continue and --resume name two conversations; pass one')
  if (resume !== undefined) return { kind: 'resume', id: resume }
  if (!latest) return { kind: 'new' }
  return session?.() ?? { kind: 'latest' }
}

export function acceptance({
  acceptAltered = false,
  sandbox,
}: Pick<TurnFlags, 'acceptAltered' | 'sandbox'>): Pick<ConversationRequest, 'acceptAltered' | 'sandbox'> {
  return { ...(acceptAltered ? { acceptAltered } : {}), ...(sandbox ? { sandbox } : {}) }
}

export function formatOf({ json = false, outputFormat }: Pick<TurnFlags, 'json' | 'outputFormat'>): OutputFormat {
  if (json && outputFormat !== undefined && outputFormat !== 'json')
    throw new FailureError('usage', `--json and --output-format ${outputFormat} name two formats; pass one`)
  return outputFormat ?? (json ? 'json' : 'text')
}

/** What the flags of a turn say of its conversation and of how it is shown. */

import type { OutputFormat } from '../../channels/terminal/render.ts'
import type { ConversationRequest } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { TurnFlags } from './turn-flags.ts'

/** `session` is what an agent of its own goes on with. @throws FailureError usage when two conversations are named. */
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

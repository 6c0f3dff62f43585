/** Formats what a person reads beside an answer: what was used, what proves it, how to approve; and the line below the input. */

import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Conversation } from '../../../host/api.ts'
import type { ClaimMark } from '../../../host/contract/claim-mark.ts'
import { attempt } from '../../../kit/errors.ts'
import { count, grouped, visible } from '../../../kit/text.ts'
import type { Ending, Usage } from '../../../runtime/event.ts'
import { cachedShare } from '../../../runtime/usage.ts'
import { oneLine } from '../render.ts'

/** Returns a line for each claim that is not proved, or one line that counts the proved ones; nothing for an answer without claims. */
export function proofLines(proof: readonly ClaimMark[]): readonly string[] {
  const doubtful = proof.filter(({ state }) => state !== 'proved')
  if (doubtful.length > 0) return doubtful.map(({ state, claim, why }) => oneLine(`${state}: "${claim}": ${why}`, 400))
  return proof.length === 0 ? [] : [`proved: ${count(proof.length, 'claim')}`]
}

/** Formats `1,234 tokens in (60% cached), 56 out, $0.0021`; undefined when nothing was used, as with the offline helper. */
export function usageLine(usage: Usage | undefined): string | undefined {
  if (usage === undefined || usage.inputTokens + usage.outputTokens === 0) return undefined
  const { inputTokens, outputTokens, costMicros } = usage
  const money = costMicros === undefined ? '' : `, ${dollars(costMicros)}`
  const cached = usage.cachedInputTokens ? ` (${Math.round(cachedShare(usage) * 100)}% cached)` : ''
  return `${count(inputTokens, 'token')} in${cached}, ${grouped(outputTokens)} out${money}`
}

/** Rounds to a hundredth of a cent below one dollar, and to a cent from one dollar up. */
function dollars(micros: number): string {
  const whole = micros / 1_000_000
  return micros > 0 && micros < 100 ? 'less than $0.0001' : `$${whole.toFixed(whole < 1 ? 4 : 2)}`
}

/** Shows only the person how to approve: a model that reads it would be tempted to approve by itself. */
export function addApprovalAdvice(conversation: Pick<Conversation, 'unanswered'>, ending: Ending): Ending {
  const open = conversation.unanswered()
  const changes = open.flatMap((id) => (id.startsWith('changes:') ? [id.slice('changes:'.length)] : []))
  const calls = open.filter((id) => !id.startsWith('changes:')).map((id) => `braidclaw approvals allow ${id}`)
  const ways = [
    ...changes.map((id) => `or: braidclaw approvals allow ${id} applies what it changed, within ten minutes`),
    ...(calls.length === 0 ? [] : [`or: ${calls.join('; ')}, then: braidclaw agent -c -m "go on"`]),
  ]
  return ways.length === 0 ? ending : { ...ending, message: [ending.message, ...ways].join('; ') }
}

/** Returns what stands beside the present work: the tokens of the turn so far, what they cost, and how to stop. */
export function workFacts(usage: Usage | undefined): readonly string[] {
  const tokens = usage ? [`${grouped(usage.inputTokens + usage.outputTokens)} tokens`] : []
  return [...tokens, ...(usage?.costMicros === undefined ? [] : [dollars(usage.costMicros)]), 'Esc interrupts']
}

type Footer = Pick<Conversation, 'model' | 'workspace' | 'context'> & {
  /** The folder of the person, which is written as `~`. */
  readonly home?: string | undefined
  /** The sum of all turns of the conversation. */
  readonly used?: Usage | undefined
}

/** Formats `local/mock · ~/project · main · 34% of context · $0.0021`; what is not known is left out. */
export function footerOf({ model, workspace, context, home, used }: Footer): string {
  const { window, used: tokens = 0 } = context() ?? {}
  const folder = home && `${workspace}/`.startsWith(`${home}/`) ? `~${workspace.slice(home.length)}` : workspace
  const share = window ? `${Math.round((tokens * 100) / window)}% of context` : ''
  const cost = used?.costMicros === undefined ? '' : dollars(used.costMicros)
  return [visible(model), visible(folder), visible(branchOf(workspace)), share, cost].filter((fact) => fact !== '').join(' · ')
}

/** Reads the branch of the repository around the folder, or the first digits of its commit; empty outside of a repository. */
export function branchOf(folder: string): string {
  const own = join(folder, '.git')
  // In a worktree `.git` is a file that names the directory.
  const linked = attempt(() => /^gitdir: (.+)$/m.exec(readFileSync(own, 'utf8'))?.[1])
  const head = attempt(() => readFileSync(join(linked ? resolve(folder, linked) : own, 'HEAD'), 'utf8'))
  if (head !== undefined) return /^ref: refs\/heads\/(.{1,500})/.exec(head)?.[1] ?? head.slice(0, 8)
  return dirname(folder) === folder ? '' : branchOf(dirname(folder))
}

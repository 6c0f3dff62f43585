/** Gives the outcome of a call that ran on a private view of the workspace, and the text of any outcome for the model. */

import { isObject } from '../kit/json.ts'
import type { Instruction, InternalEvent, ToolOutcome } from './event.ts'

type Drop = Extract<InternalEvent, { type: 'drop' }>

const fates = ['none', 'direct', 'dropped', 'pending']

/**
 * Returns what became of a call's changes: the digest of those that were applied, `none` when there were none, `dropped`, `pending` while
 * they wait for a person, `direct` when the call ran on the workspace itself. Undefined when the call started no confined child.
 */
export function changesOf(metadata: { readonly changes?: unknown } | undefined): string | undefined {
  const fate = metadata?.changes
  return typeof fate === 'string' && (fates.includes(fate) || /^[0-9a-f]{64}$/.test(fate)) ? fate : undefined
}

/** Returns the outcome of a call whose changes were applied. A command that failed stays a failure: its changes until then are applied. */
export function applied(ran: ToolOutcome, { digest }: { readonly digest: string }): ToolOutcome {
  return withChanges(ran, digest)
}

/** Returns the outcome of a call whose changes could not be applied, or were not permitted after all; none of them is in the workspace. */
export function notApplied(ran: ToolOutcome, status: 'failed' | 'denied', why: string): ToolOutcome {
  const error = `the command ran, but its changes were not applied: ${why}`
  return withChanges({ ...ran, status, error }, 'dropped')
}

/** Returns a denial that keeps the command's output. The journal's outcome may come from another program, so it is taken as it is. */
export function dropOutcome<Ran extends { readonly metadata?: unknown }>(drop: Pick<Drop, 'by' | 'reason'> & { readonly outcome: Ran }) {
  const { by, reason, outcome } = drop
  const metadata = { ...(isObject(outcome.metadata) ? outcome.metadata : {}), changes: isPending(drop) ? 'pending' : 'dropped' }
  return { ...outcome, status: 'denied' as const, error: `${by}: ${reason}`, metadata }
}

/** Tells whether the changes wait for an approval because nobody could be asked, unless they could not be stored (`notKept`). */
export function isPending({ by, outcome }: Pick<Drop, 'by'> & { readonly outcome: { readonly metadata?: unknown } }): boolean {
  return by === 'approval.nobody' && !(isObject(outcome.metadata) && outcome.metadata.changes === 'dropped')
}

/**
 * Marks the result of a call whose changes are lost unless they are applied in this run, because they could not be kept for a later yes.
 */
export function notKept(ran: ToolOutcome): ToolOutcome {
  return withChanges(ran, 'dropped')
}

function withChanges(outcome: ToolOutcome, changes: string): ToolOutcome {
  return { ...outcome, metadata: { ...outcome.metadata, changes } }
}

/** Returns the output for the model, or why there is none, followed by the instructions of the folders that the call touched first. */
export function outcomeText({ status, output, error, instructions = [] }: ToolOutcome): string {
  const head = status === 'allowed' ? '' : `${status === 'denied' ? 'Denied' : 'Failed'}: ${error || 'no reason given'}`
  const result = head !== '' && output !== '' ? `${head}\n${output}` : `${head}${output}`
  return [result, ...instructions.map(instructionText)].join('\n\n')
}

/** Returns no member where there are no pictures: the digest of a message, and the bytes of a request, stay as they are. */
export function picturesIn<Each>({ pictures }: { readonly pictures?: readonly Each[] | undefined }): { pictures?: readonly Each[] } {
  return pictures?.length ? { pictures } : {}
}

/** Explains to the model that the command ran, that its changes are not in the workspace, and why. */
export function dropText(drop: Pick<Drop, 'by' | 'reason' | 'outcome'> & { readonly review: Pick<Drop['review'], 'summary'> }): string {
  const { by, reason, review, outcome } = drop
  const lost = by === 'approval.nobody' ? '; they could not be kept for a later yes' : ''
  const fate = isPending(drop)
    ? `they wait for a person's yes and are not in the workspace (${by}: ${reason})`
    : `they were dropped by ${by}: ${reason}${lost}; the workspace is as it was before the command`
  return `The command ran, but its changes were not applied: ${fate}.\nNot applied: ${review.summary}\nWhat the command printed:\n${outcomeText(outcome)}`
}

function instructionText({ path, text }: Instruction): string {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return `[BraidClaw adds, once: the user's instructions for ${folder}, from ${path}]\n${text}`
}

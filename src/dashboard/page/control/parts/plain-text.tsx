/** Shows text of agents and tasks as exactly the characters it has: what would hide or turn text around is shown by its number. */

import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { Block } from '../../parts/small.tsx'

const escapeCharacter = String.fromCharCode(27)
const colours = new RegExp(`${escapeCharacter}\\[[0-9;:]*m`, 'g')
/**
 * Control characters, and format characters: they change the direction of text, or cannot be seen. The joiners stay, as emoji and some
 * scripts are written with them.
 */
const unseen = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Line ends of DOS become those of Unix first. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(unseen, (sign) => `⟨${(sign.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}⟩`)
}

/** Colours of a terminal mean nothing here, and other control characters are shown. */
export function visibleLog(text: string): string {
  return visible(text.replaceAll(colours, ''))
}

/** One line; it has its own direction, so right-to-left text does not turn around what stands beside it. */
export function PlainText({ text }: { readonly text: string }) {
  return <bdi dir="auto">{visible(text)}</bdi>
}

/** Shows a text of its own, if there is one. */
export function PlainParagraph({ text }: { readonly text: string | null }) {
  if (text === null || text === '') return null
  return (
    <p class="breaks">
      <PlainText text={text} />
    </p>
  )
}

/** Shows what there is to say about the words before it, behind a colon. */
export function After({ text }: { readonly text: string | null }) {
  if (text === null || text === '') return null
  return (
    <>
      {': '}
      <PlainText text={text} />
    </>
  )
}

export function PlainBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return <Block label={label} text={visible(text)} />
}

export function JsonBlock({ of, label }: { readonly of: unknown; readonly label: string }) {
  return <PlainBlock label={label} text={JSON.stringify(of, null, 2) ?? 'undefined'} />
}

/** Shows why an agent asks, and the details of what it would do. */
export function Reasoning({ of: { approval_id, reasoning, details } }: { readonly of: Approval }) {
  return (
    <>
      <PlainParagraph text={reasoning} />
      {Object.keys(details).length > 0 && <JsonBlock of={details} label={`Details of ${approval_id}`} />}
    </>
  )
}

/** Lists the statuses and priorities of tasks for people; the type of the contract says when one is missing. */
const statuses: { readonly [status in Task['status']]: true } = {
  pending: true,
  running: true,
  awaiting_approval: true,
  budget_blocked: true,
  blocked: true,
  dead: true,
  failed: true,
  completed: true,
  cancelled: true,
}
const importance: { readonly [priority in Task['priority']]: true } = { urgent: true, high: true, medium: true, low: true }

/** Lists the states in the order of the board. */
export const taskStatuses = Object.keys(statuses) as readonly Task['status'][]
export const priorities = Object.keys(importance) as readonly Task['priority'][]

export function hasEnded({ status }: Task): boolean {
  return status === 'completed' || status === 'failed' || status === 'dead' || status === 'cancelled'
}

/** A dead task is put away by it. */
export function canCancel(task: Task): boolean {
  return !hasEnded(task) || task.status === 'dead'
}

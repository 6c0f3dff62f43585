/** Small pieces of the control pages: tags of states, links to records, the line of a run, tokens, and times beside the present. */

import type { ComponentChildren } from 'preact'
import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { counted, whole } from '../../parts/fields.tsx'
import { Button, Select, Tag, Time } from '../../parts/small.tsx'
import { clock } from '../control-state.ts'
import { After, PlainText, visible } from './plain-text.tsx'

const statusKinds: { readonly [state: string]: 'good' | 'bad' | 'warn' } = {
  running: 'good',
  completed: 'good',
  applied: 'good',
  approved: 'good',
  used: 'good',
  done: 'good',
  failed: 'bad',
  dead: 'bad',
  lost: 'bad',
  rejected: 'bad',
  in_doubt: 'bad',
  given_up: 'bad',
  awaiting_approval: 'warn',
  budget_blocked: 'warn',
  blocked: 'warn',
  waiting: 'warn',
  pending: 'warn',
  revise: 'warn',
}

/** "budget_blocked" becomes "budget blocked". */
export function wordsOf(state: string): string {
  return state.replaceAll('_', ' ')
}

/** A pending task is as it should be; a pending approval waits for a person. */
export function StateTag({ of, calm = false }: { readonly of: string; readonly calm?: boolean }) {
  return <Tag kind={calm ? '' : (statusKinds[of] ?? '')}>{wordsOf(of)}</Tag>
}

export function TaskStatus({ task: { status, blocked_reason, cancel_requested } }: { readonly task: Task }) {
  return (
    <>
      <StateTag of={status} calm={status === 'pending'} />
      {blocked_reason !== null && <StateTag of={blocked_reason} />}
      {cancel_requested && status === 'running' && <Tag kind="warn">cancelling</Tag>}
    </>
  )
}

export function PriorityTag({ of }: { readonly of: string }) {
  return of === 'medium' ? null : <Tag kind={of === 'urgent' ? 'bad' : of === 'high' ? 'warn' : ''}>{of}</Tag>
}

/** Links to the page of a task, a run or an agent, by its id. */
export function IdLink({ id }: { readonly id: string }) {
  const page = id.startsWith('TASK-') ? 'tasks' : id.startsWith('RUN-') ? 'runs' : 'agents'
  return (
    <a class="mono" href={`#/${page}/${encodeURIComponent(id)}`}>
      {id}
    </a>
  )
}

/** Shows the heading of a record, also before the record is loaded and when it does not exist. */
export function IdHeading({ id, title = '' }: { readonly id: string; readonly title?: string | undefined }) {
  return (
    <h1 class="breaks">
      <span class="quiet mono">{visible(id)}</span> <PlainText text={title} />
    </h1>
  )
}

export function At({ time, otherwise = 'never' }: { readonly time: string | null; readonly otherwise?: string }): ComponentChildren {
  return time === null ? otherwise : <Time at={Date.parse(time)} />
}

/** Continues a sentence with what happened later, if it did. */
export function Then({ word, time }: { readonly word: string; readonly time: string | null }) {
  if (time === null) return null
  return (
    <>
      , {word} <At time={time} />
    </>
  )
}

/** Shows a time such as "3 min ago"; its title is the exact time. */
export function Ago({ time }: { readonly time: string }) {
  const at = Date.parse(time)
  return (
    <time dateTime={time} title={new Date(at).toLocaleString()}>
      {agoOf(Math.max(0, clock.value - at))}
    </time>
  )
}

function agoOf(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return 'just now'
  if (minutes < 60) return `${minutes} min ago`
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1_440)} days ago`
}

export function tokensOf(count: number | null): string {
  return count === null ? 'no limit' : whole(count)
}

/** Shows a label beside its key; the key is visible only on the marked entry. */
export function Keyed({ of, marked, children }: { readonly of: string; readonly marked: boolean; readonly children: ComponentChildren }) {
  return (
    <>
      {children}
      {marked && (
        <>
          {' '}
          <kbd>{of}</kbd>
        </>
      )}
    </>
  )
}

type NamedButtonProps = {
  readonly word: string
  /** Names what the button acts on, for those who hear the page. */
  readonly name: string
  readonly on: () => unknown
  readonly keyed?: string
  readonly marked?: boolean
}

export function NamedButton({ word, name, on, keyed = '', marked = false }: NamedButtonProps) {
  const shown = (
    <Keyed of={keyed} marked={marked}>
      {word}
      <span class="hidden"> {name}</span>
    </Keyed>
  )
  return <Button word={shown} on={on} />
}

type ChoiceProps = {
  readonly name: string
  readonly of: readonly string[]
  readonly value: string | undefined
  readonly set: (value: string) => void
}

/** Chooses one of a few values; a value that is not known any more stays visible. */
export function Choice({ name, of, value = '', set }: ChoiceProps) {
  const known = value === '' || of.includes(value) ? of : [...of, value]
  const all = [['', `Any ${name.toLowerCase()}`], ...known.map((each) => [each, wordsOf(each)] as const)] as const
  return <Select aria-label={name} value={value} of={all} set={set} />
}

type RunRowProps = { readonly run: ListedRun; readonly marked?: boolean; readonly isOfTask?: boolean }

export function RunRow({ run, marked = false, isOfTask = false }: RunRowProps) {
  const { run_id, task_id, task_title, agent_id, attempt, state, began_at, tokens_used, error, changes } = run
  return (
    <li data-mark={isOfTask ? undefined : run_id} tabIndex={-1} class={marked ? 'marked' : ''} aria-current={marked || undefined}>
      <a class="entry row spread" href={`#/runs/${run_id}`}>
        <span class="mono small quiet">{run_id}</span>
        <span class="grow clip">
          {isOfTask ? (
            <>
              Attempt {attempt}
              <After text={error} />
            </>
          ) : (
            <>
              <span class="mono small">{task_id}</span> <PlainText text={task_title} />
            </>
          )}
        </span>
        <span class="row small">
          {changes === 'waiting' && <StateTag of="waiting" />}
          <StateTag of={state} />
          <span class="quiet">{agent_id}</span>
          <span class="quiet">{counted(tokens_used, 'token')}</span>
          <span class="quiet">
            <At time={began_at} />
          </span>
        </span>
      </a>
    </li>
  )
}

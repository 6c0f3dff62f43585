/** Shows one thing that needs the person, with the buttons that answer it. */

import { computed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { Agent } from '../../../../control/contract/fleet-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { counted, submitBy, whole } from '../../parts/fields.tsx'
import { Tag } from '../../parts/small.tsx'
import { notice } from '../../state.ts'
import {
  cancel,
  changeLimit,
  decide,
  pauseOrResume,
  raised,
  resolve,
  retry,
  type SpentLimit,
  spentLimits,
  wake,
  workerCommand,
} from '../actions.tsx'
import { agents, budget, isUnseen, pending, stuck } from '../control-state.ts'
import { copied } from './ask.tsx'
import { Ago, At, IdLink, Keyed, tokensOf } from './bits.tsx'
import { After, PlainParagraph, PlainText, Reasoning } from './plain-text.tsx'

/** Lists what needs the person, the most urgent first. */
export type Need =
  | { readonly kind: 'approval'; readonly id: string; readonly approval: Approval }
  | { readonly kind: 'spent'; readonly id: string; readonly spent: SpentLimit; readonly tasks: readonly Task[] }
  | { readonly kind: 'unpaid'; readonly id: string; readonly role: string; readonly tasks: readonly Task[] }
  | { readonly kind: 'doubtful' | 'dead'; readonly id: string; readonly task: Task }
  | { readonly kind: 'paused' | 'unseen' | 'working'; readonly id: string; readonly agent: Agent }

export const needs = computed<readonly Need[]>(() => {
  const { doubtful, dead, unpaid } = stuck.value
  const paused = agents.value.filter((agent) => agent.paused)
  const unseen = agents.value.filter((agent) => !agent.paused && isUnseen(agent))
  return [
    ...pending.value.approvals.map((approval): Need => ({ kind: 'approval', id: approval.approval_id, approval })),
    ...usedUp(unpaid),
    ...byRole(unpaid.filter(({ role }) => !isUsedUp(role))),
    ...doubtful.map((task): Need => ({ kind: 'doubtful', id: task.task_id, task })),
    ...dead.map((task): Need => ({ kind: 'dead', id: task.task_id, task })),
    ...paused.map((agent): Need => ({ kind: 'paused', id: agent.id, agent })),
    ...unseen.map((agent): Need => ({ kind: 'unseen', id: agent.id, agent })),
  ]
})

/** Agents that work as they should; below what needs the person. */
export const working = computed<readonly Need[]>(() =>
  agents.value
    .filter((agent) => agent.running.length > 0 && !agent.paused && !isUnseen(agent))
    .map((agent) => ({ kind: 'working', id: agent.id, agent })),
)

/** Somebody paused the agents on purpose, so they do not count. */
export const urgentCount = computed(() => needs.value.filter(({ kind }) => kind !== 'paused').length)

const usedLimits = computed(() => (budget.value ? spentLimits(budget.value) : []))

/** The tasks that wait stand below the limit that they wait for. */
function isUsedUp(role: string): boolean {
  return usedLimits.value.some((limit) => limit.role === undefined || limit.role === role)
}

function usedUp(unpaid: readonly Task[]): readonly Need[] {
  return usedLimits.value.map((spent) => ({
    ...{ kind: 'spent', id: spent.role ?? '*', spent },
    tasks: unpaid.filter(({ role }) => spent.role === undefined || spent.role === role),
  }))
}

function byRole(tasks: readonly Task[]): readonly Need[] {
  return [...Map.groupBy(tasks, ({ role }) => role)].map(([role, of]) => ({ kind: 'unpaid', id: `budget ${role}`, role, tasks: of }))
}

const kinds: { readonly [kind in Need['kind']]: { readonly name: string; readonly tag: 'good' | 'bad' | 'warn' | '' } } = {
  approval: { name: 'Approval', tag: 'warn' },
  spent: { name: 'Budget used up', tag: 'bad' },
  unpaid: { name: 'Waiting for budget', tag: 'warn' },
  doubtful: { name: 'Effect in doubt', tag: 'bad' },
  dead: { name: 'Dead', tag: 'bad' },
  paused: { name: 'Paused', tag: '' },
  unseen: { name: 'Not seen', tag: 'bad' },
  working: { name: 'Working', tag: 'good' },
}
const colours = { good: '', bad: 'bad', warn: 'ask', '': '' } as const

export function NeedCard({ need, id, marked }: { readonly need: Need; readonly id: string; readonly marked: boolean }) {
  const { name, tag } = kinds[need.kind]
  return (
    <article
      data-mark={id}
      tabIndex={-1}
      class={`card need ${colours[tag]} ${marked ? 'marked' : ''}`}
      aria-label={`${name}: ${need.id}`}
      aria-current={marked || undefined}
    >
      <Body need={need} marked={marked} tag={<Tag kind={tag}>{name}</Tag>} />
    </article>
  )
}

function Body({ need, ...rest }: BodyProps & { readonly need: Need }) {
  switch (need.kind) {
    case 'approval':
      return <ApprovalNeed approval={need.approval} {...rest} />
    case 'spent':
      return <Spent of={need.spent} tasks={need.tasks} {...rest} />
    case 'unpaid':
      return <Unpaid role={need.role} tasks={need.tasks} {...rest} />
    case 'doubtful':
    case 'dead':
      return <Stuck kind={need.kind} task={need.task} {...rest} />
    default:
      return <AgentBody kind={need.kind} agent={need.agent} {...rest} />
  }
}

function Unpaid({ role, tasks, marked, tag }: BodyProps & { readonly role: string; readonly tasks: readonly Task[] }) {
  const first = tasks[0]
  return (
    <>
      <Head tag={tag} title={`${counted(tasks.length, 'task')} of ${role}`} />
      {first && (
        <p>
          <IdLink id={first.task_id} /> <PlainText text={first.title} />
          <span class="quiet">
            <After text={first.error} />
          </span>
        </p>
      )}
      <div class="row">
        <a class="button" data-key="b" href={`#/budget/${encodeURIComponent(role)}`}>
          <Keyed of="b" marked={marked}>
            Look at the budget<span class="hidden"> of {role}</span>
          </Keyed>
        </a>
        <a href={`#/tasks?status=budget_blocked&role=${encodeURIComponent(role)}`}>All of them</a>
      </div>
    </>
  )
}

function Stuck({ kind, task, marked, tag }: BodyProps & { readonly kind: 'doubtful' | 'dead'; readonly task: Task }) {
  const { task_id, title, role, error, attempt, updated_at } = task
  return (
    <>
      <Head tag={tag} title={<PlainText text={title} />}>
        <Ago time={updated_at} />
      </Head>
      <p class="small quiet">
        <IdLink id={task_id} />, {role}, {counted(attempt, 'attempt')}
      </p>
      <PlainParagraph text={error} />
      <div class="row">
        {kind === 'dead' ? (
          <>
            <Act word="Retry" of="r" marked={marked} main name={task_id} act={() => retry(task)} />
            <Act word="Cancel" of="x" marked={marked} name={task_id} act={() => cancel(task)} />
          </>
        ) : (
          <>
            <Act word="It was done" of="d" marked={marked} main name={task_id} act={() => resolve(task, 'done')} />
            <Act word="Run it again" of="r" marked={marked} name={task_id} act={() => resolve(task, 'redo')} />
            <Act word="Give up" of="x" marked={marked} name={task_id} act={() => resolve(task, 'give_up')} />
          </>
        )}
      </div>
    </>
  )
}

function AgentBody({ kind, agent, marked, tag }: BodyProps & { readonly kind: Need['kind']; readonly agent: Agent }) {
  const { id, role, paused_reason, last_seen_at, running, spent_today } = agent
  const command = useRef<HTMLElement>(null)
  const isPaused = kind === 'paused'
  const copy = async () => {
    const select = () => command.current && getSelection()?.selectAllChildren(command.current)
    notice.value = { text: await copied(workerCommand(agent), select) }
    return true
  }
  return (
    <>
      <Head tag={tag} title={<a href={`#/agents/${encodeURIComponent(id)}`}>{id}</a>}>
        {last_seen_at === null ? 'never seen' : <Ago time={last_seen_at} />}
      </Head>
      <p class="small">
        <span class="quiet">
          {role}, {tokensOf(spent_today)} tokens today.
        </span>{' '}
        {isPaused && paused_reason !== null && <PlainText text={paused_reason} />}
        {running.map(({ task_id, title }) => (
          <span class="breaks" key={task_id}>
            <IdLink id={task_id} /> <PlainText text={title} />{' '}
          </span>
        ))}
      </p>
      {kind === 'unseen' && (
        <p class="small breaks">
          No worker of this role asks for tasks. Start one on its machine: <code ref={command}>{workerCommand(agent)}</code>
        </p>
      )}
      <div class="row">
        {kind === 'unseen' && <Act word="Copy the command" of="c" marked={marked} main name={`for ${id}`} act={copy} />}
        <Act word={isPaused ? 'Resume' : 'Pause'} of="p" marked={marked} main={isPaused} name={id} act={() => pauseOrResume(agent)} />
        {kind === 'unseen' && <Act word="Wake" of="w" marked={marked} name={id} act={() => wake(id)} />}
      </div>
    </>
  )
}

/** Shows an approval that waits: exactly what is asked, and the three answers. */
function ApprovalNeed({ approval, marked, tag }: BodyProps & { readonly approval: Approval }) {
  const { approval_id, operation, agent_id, role, task_id, created_at, expires_at, estimated_tokens } = approval
  const [note, setNote] = useState('')
  return (
    <>
      <Head tag={tag} title={<PlainText text={operation} />}>
        <Ago time={created_at} />
      </Head>
      <Reasoning of={approval} />
      <p class="small quiet">
        <IdLink id={agent_id} />
        {role !== null && `, ${role}`}
        {task_id !== null && (
          <>
            {', '}
            <IdLink id={task_id} />
          </>
        )}
        {estimated_tokens > 0 && `, about ${counted(estimated_tokens, 'token')}`}. Without an answer by <At time={expires_at} /> it expires.{' '}
        <span class="mono">{approval_id}</span>
      </p>
      <div class="row">
        <Act word="Approve" of="y" marked={marked} main name={approval_id} act={() => decide(approval, 'approve', note)} />
        <Act word="Deny" of="n" marked={marked} name={approval_id} act={() => decide(approval, 'reject', note)} />
        <Revise id={approval_id} note={note} setNote={setNote} marked={marked} send={() => decide(approval, 'revise', note)} />
      </div>
    </>
  )
}

type ReviseProps = {
  readonly id: string
  readonly note: string
  readonly setNote: (note: string) => void
  readonly marked: boolean
  readonly send: () => Promise<boolean>
}

/** Enter in the note sends the approval back; an empty one would not say what to change. */
function Revise({ id, note, setNote, marked, send }: ReviseProps) {
  return (
    <form class="row grow" onSubmit={submitBy(send)}>
      <input
        data-key="v"
        class="grow"
        aria-label={`Note for ${id}`}
        placeholder="Note (required to send it back)"
        maxLength={4000}
        value={note}
        required
        onInput={(event) => setNote(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.closest<HTMLElement>('[data-mark]')?.focus()
        }}
      />
      <button type="submit">
        <Keyed of="v" marked={marked}>
          Send back<span class="hidden"> {id}</span>
        </Keyed>
      </button>
    </form>
  )
}

type BodyProps = { readonly marked: boolean; readonly tag: ComponentChildren }

type HeadProps = Pick<BodyProps, 'tag'> & { readonly title: ComponentChildren; readonly children?: ComponentChildren }

/** Shows what all entries of the page Now share: their first line, and buttons that a key presses. */
function Head({ tag, title, children }: HeadProps) {
  return (
    <div class="row spread top">
      <div class="row grow">
        {tag}
        <strong class="breaks">{title}</strong>
      </div>
      <span class="quiet small">{children}</span>
    </div>
  )
}

type ButtonProps = {
  readonly of: string
  readonly marked: boolean
  readonly name: string
  readonly main?: boolean
  readonly act: () => Promise<boolean>
  readonly word: string
}

const answeredMs = 1_000

/** Acts once at a time; the second click of a double click may meet the entry that took the place of this one. */
function Act({ of, marked, name, main = false, act, word }: ButtonProps) {
  const busy = useRef(false)
  async function press({ detail }: MouseEvent): Promise<void> {
    if (busy.current || detail > 1) return
    busy.current = true
    // What was done shows with its event, a moment later.
    const rest = (await act()) ? answeredMs : 0
    setTimeout(() => (busy.current = false), rest)
  }
  return (
    <button type="button" data-key={of} class={main ? 'main' : ''} onClick={(event) => void press(event)}>
      <Keyed of={of} marked={marked}>
        {word}
        <span class="hidden"> {name}</span>
      </Keyed>
    </button>
  )
}

/** Shows a limit of the day that is used up: its agents claim nothing more until it is raised or the next day begins. */
function Spent({ of, tasks, marked, tag }: BodyProps & { readonly of: SpentLimit; readonly tasks: readonly Task[] }) {
  const { role, limit, spent } = of
  const now = budget.value
  const [first] = tasks
  const place = role === undefined ? '' : `/${encodeURIComponent(role)}`
  return (
    <>
      <Head tag={tag} title={role ?? 'All roles'} />
      <p>
        {whole(spent)} of {whole(limit)} tokens are spent today: {role === undefined ? 'no agent' : `no agent of ${role}`} gets another task
        before the limit is raised
        {now && (
          <>
            , or the next day begins <At time={now.next_day_at} />
          </>
        )}
        .
      </p>
      {first && (
        <p class="small">
          {counted(tasks.length, 'task')} without budget, first <IdLink id={first.task_id} /> <PlainText text={first.title} />
        </p>
      )}
      <div class="row">
        {now && (
          <Act
            word={`Raise to ${whole(raised(of))}`}
            of="b"
            marked={marked}
            main
            name={`for ${role ?? 'all roles'}`}
            act={() => changeLimit(now, role, raised(of))}
          />
        )}
        <a href={`#/budget${place}`}>Another limit</a>
      </div>
    </>
  )
}

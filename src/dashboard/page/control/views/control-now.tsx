/** Answers "what needs me first": one list, the most urgent first, in which one key does what the entry needs. */

import { useMark } from '../../parts/mark.ts'
import { Empty, Part } from '../../parts/small.tsx'
import { agents, counts, isKnown, pending } from '../control-state.ts'
import { NeedCard } from '../parts/need-card.tsx'
import { type Need, needs, working } from '../parts/needs.ts'

export function ControlNow(_: { readonly rest: string }) {
  const entries = () => [...needs.value, ...working.value]
  const marked = useMark({
    ids: () => entries().map(markOf),
    action: (key, id) => {
      const need = entries().find((each) => markOf(each) === id)
      return need && actionOf(need, key)
    },
    focuses: true,
  })
  const card = (need: Need) => <NeedCard key={markOf(need)} need={need} id={markOf(need)} marked={markOf(need) === marked} />
  return (
    <>
      <h1>Now</h1>
      <Counts />
      <section aria-label="Waiting for you">
        {needs.value.length === 0 && isKnown.value && (agents.value.length === 0 ? <FirstSteps /> : <Empty>Nothing waits for you.</Empty>)}
        {needs.value.map(card)}
        {pending.value.more && <p class="quiet">More approvals wait; they show when these are answered.</p>}
        <More status="dead" shown={needs.value.filter(({ kind }) => kind === 'dead').length} />
      </section>
      <Part id="working-title" title="Working">
        {working.value.length === 0 && <Empty>No agent works.</Empty>}
        {working.value.map(card)}
      </Part>
    </>
  )
}

/** Says how to begin while no agent works for this control plane. */
function FirstSteps() {
  return (
    <Empty>
      No agent is known yet. <a href="#/agents">Add one</a>, start its worker with the command that is shown with its key, and{' '}
      <a href="#/tasks/new">make a task</a> for its role.
    </Empty>
  )
}

function markOf({ kind, id }: Need): string {
  return `${kind} ${id}`
}

const numbers = ['pending', 'running', 'awaiting_approval', 'budget_blocked', 'blocked', 'dead'] as const

function Counts() {
  return (
    <ul class="counts" aria-label="Tasks by status">
      {numbers.map((status) => (
        <li key={status}>
          <a href={`#/tasks?status=${status}`}>
            <b>{(counts.value[status] ?? 0).toLocaleString()}</b> {status.replaceAll('_', ' ')}
          </a>
        </li>
      ))}
    </ul>
  )
}

function More({ status, shown }: { readonly status: string; readonly shown: number }) {
  const rest = (counts.value[status] ?? 0) - shown
  if (shown === 0 || rest <= 0) return null
  return (
    <p>
      <a href={`#/tasks?status=${status}`}>
        {rest.toLocaleString()} more {status.replaceAll('_', ' ')} tasks
      </a>
    </p>
  )
}

/** A key presses the button of the card that shows it, so both do the same, with the same note. */
function actionOf(need: Need, key: string): (() => void) | undefined {
  if (key === 'Enter') return () => (location.hash = `#/${placeOf(need)}`)
  if (!/^[a-z]$/.test(key)) return undefined
  const button = document.querySelector<HTMLElement>(`[data-mark="${CSS.escape(markOf(need))}"] [data-key="${key}"]`)
  return button ? () => (button instanceof HTMLInputElement ? button.focus() : button.click()) : undefined
}

function placeOf(need: Need): string {
  if (need.kind === 'approval')
    return need.approval.task_id === null ? `agents/${need.approval.agent_id}` : `tasks/${need.approval.task_id}`
  if (need.kind === 'spent') return need.spent.role === undefined ? 'budget' : `budget/${encodeURIComponent(need.spent.role)}`
  if (need.kind === 'unpaid') return `budget/${encodeURIComponent(need.role)}`
  return need.kind === 'doubtful' || need.kind === 'dead' ? `tasks/${need.id}` : `agents/${encodeURIComponent(need.id)}`
}

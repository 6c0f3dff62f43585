/** Shows the pages of a control plane in the common frame, follows its events, and explains the keys. */

import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isOther, keysOn, useMark } from '../parts/mark.ts'
import { type PageRow, Shell, useFollowing, Waiting } from '../parts/shell.tsx'
import { Button, Empty, Part } from '../parts/small.tsx'
import { AgentsPage } from './agents/agent-view.tsx'
import { agents, budget, counts, isKnown, pending, refreshing, refreshPlane } from './control-state.ts'
import { followPlane } from './net/plane-live.ts'
import { Asking } from './parts/ask.tsx'
import { type Need, NeedCard, needs, urgentCount, working } from './parts/need-card.tsx'
import { RunsPage } from './runs/run-view.tsx'
import { AuditPage } from './views/audit-page.tsx'
import { BudgetPage } from './views/budget-page.tsx'
import { HeartbeatSchedules } from './views/heartbeat-schedules.tsx'
import { OperatorsPage } from './views/operators-page.tsx'
import { TasksPage } from './views/tasks-page.tsx'

/** `g` and then the letter goes there. */
const pages: readonly (PageRow & { readonly letter: string })[] = [
  { path: '', letter: 'n', name: 'Now', View: ControlNow },
  { path: 'tasks', letter: 't', name: 'Tasks', View: TasksPage },
  { path: 'runs', letter: 'r', name: 'Runs', View: RunsPage },
  { path: 'agents', letter: 'a', name: 'Agents', View: AgentsPage },
  { path: 'budget', letter: 'b', name: 'Budget', View: BudgetPage },
  { path: 'schedules', letter: 's', name: 'Schedules', View: HeartbeatSchedules },
  { path: 'audit', letter: 'u', name: 'Audit', View: AuditPage },
  { path: 'operators', letter: 'o', name: 'Operators', View: OperatorsPage },
]

export function ControlFrame() {
  useEffect(goingByKeys, [])
  const isReady = useFollowing((leaving, connected) => {
    const end = refreshing()
    void followPlane(leaving, () => {
      connected()
      void refreshPlane()
    })
    return end
  })
  if (!isReady) return <Waiting brand="BraidClaw control" what="Connecting" />
  const foot = (
    <button type="button" class="small keys" onClick={() => (helpShown.value = true)}>
      Keys <kbd>?</kbd>
    </button>
  )
  const banner = budget.value?.hard_limit_exceeded && (
    <div class="banner warn" role="status">
      Today's budget is used up. <a href="#/budget">Look at the budget</a>
    </div>
  )
  return (
    <>
      <Shell brand="BraidClaw control" pages={pages} waiting={urgentCount.value} foot={foot} banners={banner} />
      <Asking />
      <Help />
    </>
  )
}

const helpShown = signal(false)

const never = Number.NEGATIVE_INFINITY

function goingByKeys(): () => void {
  const state = { wentAt: never }
  const press = (event: KeyboardEvent) => {
    if (isOther(event)) return
    if (event.key === '?') helpShown.value = true
    if (!keysOn.value) return
    const to = pages.find(({ letter }) => letter === event.key)?.path
    if (performance.now() - state.wentAt < 1_500 && to !== undefined) {
      event.preventDefault()
      event.stopImmediatePropagation()
      state.wentAt = never
      location.hash = `#/${to}`
    } else state.wentAt = event.key === 'g' ? performance.now() : never
  }
  // Before the keys of a list, so that the second letter does nothing to the marked entry.
  addEventListener('keydown', press, { capture: true })
  return () => removeEventListener('keydown', press, { capture: true })
}

const rows: readonly (readonly [keys: string, what: string])[] = [
  ['j, k', 'mark the next or the previous entry'],
  ['Enter', 'open the marked entry'],
  ['y, n', 'approve or deny the marked approval'],
  ['v', 'send the marked approval back with a note'],
  ['r', 'retry the marked task; an effect in doubt runs again'],
  ['d, x', 'an effect in doubt was done; give the task up, or cancel it'],
  ['p, w', 'pause or resume the marked agent; wake it'],
  ['b', 'open the budget that the marked tasks wait for'],
  ['/', 'search the tasks'],
  ['g, then n t r a b s u o', 'go to Now, Tasks, Runs, Agents, Budget, Schedules, Audit, Operators'],
  ['?', 'show these keys'],
]

function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const shown = helpShown.value
  // Before the next key, which belongs to the dialog.
  useLayoutEffect(() => {
    if (shown) dialog.current?.showModal()
  }, [shown])
  if (!shown) return null
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => (helpShown.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl class="facts">
        {rows.map(([keys, what]) => (
          <div class="key-row" key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p>
        <label class="check">
          <input
            type="checkbox"
            checked={keysOn.value}
            onChange={(event) => {
              keysOn.value = event.currentTarget.checked
              localStorage.setItem('keys', keysOn.value ? 'on' : 'off')
            }}
          />{' '}
          Single keys act on the marked entry
        </label>
      </p>
      <Button word="Close" on={() => dialog.current?.close()} />
    </dialog>
  )
}

/** Answers "what needs me first": one list, the most urgent first, in which one key does what the entry needs. */
function ControlNow(_: { readonly rest: string }) {
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
        {pending.value.more && <p class="quiet">More approvals wait; they appear when these are answered.</p>}
        <More status="dead" shown={needs.value.filter(({ kind }) => kind === 'dead').length} />
      </section>
      <Part id="working-title" title="Working">
        {working.value.length === 0 && <Empty>No agent is working.</Empty>}
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

/** Returns the action of a key: it presses the button that shows the key, so both do the same, with the same note. */
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

/** Shows a column for each status with its count and its newest tasks; an event loads only the columns that it changes. */

import { memo } from 'preact/compat'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { TaskPage } from '../../../../control/contract/plane.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { useMark } from '../../parts/mark.ts'
import { Empty, Problem } from '../../parts/small.tsx'
import { textOf } from '../../state.ts'
import { cancel, retry } from '../actions.tsx'
import { plane, queryOf } from '../net/plane-live.ts'
import type { Filters } from '../parts/address.ts'
import { Ago, PriorityTag, TaskStatus, wordsOf } from '../parts/bits.tsx'
import { keepingUp, PagedList, type Rows, usePaged } from '../parts/paged-list.tsx'
import { canCancel, PlainText, taskStatuses } from '../parts/plain-text.tsx'

type TaskStatusName = Task['status']
type Columns = { readonly [status in TaskStatusName]?: Pick<TaskPage, 'tasks' | 'next'> }
type Board = { readonly columns: Columns; readonly counts: Readonly<Record<string, number>>; readonly error?: string }

const shown = 12
/** Up to so many changed tasks are looked at one by one, to find out which columns they leave and enter. */
const single = 6

export function TaskBoard({ filters }: { readonly filters: Filters }) {
  const key = queryOf(filters)
  const [board, setBoard] = useState<Board | undefined>(undefined)
  const now = useRef<Columns>({})
  now.current = board?.columns ?? {}
  useEffect(() => {
    const state = { ended: false }
    const load = async (statuses: readonly TaskStatusName[]) => {
      try {
        const found = await Promise.all(statuses.map((status) => column(status, filters)))
        if (state.ended) return
        const columns = Object.fromEntries(statuses.map((status, at) => [status, found[at]]))
        const counts = found.at(-1)?.counts ?? {}
        setBoard((before) => ({ columns: { ...before?.columns, ...columns }, counts }))
      } catch (error) {
        if (!state.ended) setBoard((before) => ({ columns: {}, counts: {}, ...before, error: textOf(error) }))
      }
    }
    void load(taskStatuses)
    const end = keepingUp({
      changed: ({ task_id, type }) => (type.startsWith('task.') || type.startsWith('approval.') ? task_id : undefined),
      refresh: async (ids) => load(await columnsOf(ids, now.current)),
    })
    return () => {
      state.ended = true
      end()
    }
  }, [key])
  if (!board) return <Empty>Loading</Empty>
  return (
    <>
      {board.error !== undefined && <Problem>{board.error}</Problem>}
      <div class="board">
        {taskStatuses.map((status) => (
          <Column key={status} status={status} of={board.columns[status]} count={countOf(board, status, filters)} filters={filters} />
        ))}
      </div>
    </>
  )
}

function column(status: TaskStatusName, filters: Filters): Promise<TaskPage> {
  return plane<TaskPage>('GET', `tasks${queryOf({ ...filters, view: 'full', brief: true, status, limit: shown })}`)
}

/** The columns that the tasks were in and are in now. */
async function columnsOf(ids: ReadonlySet<string>, columns: Columns): Promise<readonly TaskStatusName[]> {
  if (ids.size > single || ids.has('all')) return taskStatuses
  try {
    const tasks = await Promise.all([...ids].map((id) => plane<Task>('GET', `tasks/${id}`)))
    const before = taskStatuses.filter((status) => columns[status]?.tasks.some(({ task_id }) => ids.has(task_id)))
    return [...new Set([...before, ...tasks.map(({ status }) => status)])]
  } catch {
    return taskStatuses
  }
}

/** The counts of the server are of all tasks of a role; other filters leave fewer, which nobody counts. */
function countOf({ columns, counts }: Board, status: TaskStatusName, { q = '', label = '' }: Filters): string {
  if (q === '' && label === '') return (counts[status] ?? 0).toLocaleString()
  const column = columns[status]
  return `${column?.tasks.length ?? 0}${column?.next ? '+' : ''}`
}

type ColumnProps = {
  readonly status: TaskStatusName
  readonly of: Columns[TaskStatusName]
  readonly count: string
  readonly filters: Filters
}

function Column({ status, of, count, filters }: ColumnProps) {
  const all = `#/tasks${queryOf({ ...filters, status, view: 'list' })}`
  return (
    <section class="column" aria-label={wordsOf(status)}>
      <h2>
        <a href={all}>{wordsOf(status)}</a> <span class="quiet">{count}</span>
      </h2>
      <ul class="list">
        {of?.tasks.map((task) => (
          <TaskCard key={task.task_id} task={task} />
        ))}
      </ul>
      {of?.next && (
        <a class="small" href={all}>
          More<span class="hidden"> {wordsOf(status)}</span>
        </a>
      )}
    </section>
  )
}

function TaskCard({ task: { task_id, title, role, agent_id, priority, blocked_reason } }: { readonly task: Task }) {
  return (
    <li>
      <a class="task" href={`#/tasks/${task_id}`}>
        <span class="title">
          <PlainText text={title} />
        </span>
        <span class="small quiet">
          {task_id} · {agent_id ?? role}
          {blocked_reason !== null && ` · ${wordsOf(blocked_reason)}`} <PriorityTag of={priority} />
        </span>
      </a>
    </li>
  )
}

/** Lists the tasks that the filters leave, newest first, page by page; keys move over them and act on the marked one. */
export function TaskList({ filters }: { readonly filters: Filters }) {
  const paged = usePaged<Task>({
    key: queryOf(filters),
    load: (page) => loadSome(filters, page),
    one: (id) => plane<Task>('GET', `tasks/${id}`),
    idOf: ({ task_id }) => task_id,
    changed: ({ task_id, type }) => (type.startsWith('task.') || type.startsWith('approval.') ? task_id : undefined),
  })
  const rows = paged.rows ?? []
  const marked = useMark({
    ids: () => rows.map(({ task_id }) => task_id),
    action: (key, id) => {
      const task = rows.find(({ task_id }) => task_id === id)
      if (key === 'Enter') return () => (location.hash = `#/tasks/${id}`)
      if (!task) return undefined
      if (key === 'r' && canRetry(task)) return () => retry(task)
      return key === 'x' && canCancel(task) ? () => cancel(task) : undefined
    },
    focuses: true,
  })
  return (
    <PagedList paged={paged} empty={queryOf(filters) === '' ? 'No task exists yet. "New task" makes one.' : 'No task matches the filters.'}>
      <ul class="list rows" aria-label="Tasks">
        {rows.map((task) => (
          <TaskRow key={task.task_id} task={task} marked={task.task_id === marked} />
        ))}
      </ul>
    </PagedList>
  )
}

/** A search looks at so many tasks each time: it may have found none yet. */
async function loadSome(filters: Filters, page: { readonly after?: string; readonly limit: number }): Promise<Rows<Task>> {
  for (let after = page.after; ; ) {
    const query = queryOf({ ...filters, ...page, after, view: 'full', brief: true })
    const { tasks, next } = await plane<TaskPage>('GET', `tasks${query}`)
    if (tasks.length > 0 || next === null) return { rows: tasks, next }
    after = next
  }
}

/** Starts an ended task again, or starts a task at once that waits for its time. */
export function canRetry({ status, available_at }: Task): boolean {
  if (status === 'pending') return Date.parse(available_at) > Date.now()
  return status === 'dead' || status === 'failed' || status === 'cancelled' || status === 'budget_blocked'
}

/** Drawn again only when its task is another one than before. */
export const TaskRow = memo(({ task, marked = false }: { readonly task: Task; readonly marked?: boolean }) => {
  const { task_id, title, role, agent_id, priority, labels, updated_at } = task
  return (
    <li data-mark={task_id} tabIndex={-1} class={marked ? 'marked' : ''} aria-current={marked || undefined}>
      <a class="entry row spread" href={`#/tasks/${task_id}`}>
        <span class="mono small quiet">{task_id}</span>
        <span class="grow clip">
          <PlainText text={title} />
        </span>
        <span class="row small">
          {labels.slice(0, 3).map((label) => (
            <span class="quiet" key={label}>
              #{label}
            </span>
          ))}
          <PriorityTag of={priority} />
          <TaskStatus task={task} />
          <span class="quiet">{agent_id ?? role}</span>
          <span class="quiet">
            <Ago time={updated_at} />
          </span>
        </span>
      </a>
    </li>
  )
})

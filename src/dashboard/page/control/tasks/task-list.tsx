/** Lists the tasks that the filters leave, newest first, page by page; keys move over them and act on the marked one. */

import { memo } from 'preact/compat'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { useMark } from '../../parts/mark.ts'
import { cancel, retry } from '../actions.tsx'
import type { TaskPage } from '../control-state.ts'
import { plane, queryOf } from '../net/plane.ts'
import type { Filters } from '../parts/address.ts'
import { Ago, PriorityTag, TaskStatus } from '../parts/bits.tsx'
import { type Rows, usePaged } from '../parts/paged.ts'
import { PagedList } from '../parts/paged-list.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { canCancel } from '../parts/task-words.ts'

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
    <PagedList paged={paged} empty={queryOf(filters) === '' ? 'There is no task yet. New task makes one.' : 'No task is like that.'}>
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
    const query = queryOf({ ...filters, ...page, ...(after === undefined ? {} : { after }), view: 'full', brief: true })
    const { tasks, next } = await plane<TaskPage>('GET', `tasks${query}`)
    if (tasks.length > 0 || next === null) return { rows: tasks, next }
    after = next
  }
}

/** An ended task starts anew; one that waits for its time runs at once. */
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

/** Answers "who works on what": all tasks as a board or as a list, or one of them. */

import { useEffect, useRef } from 'preact/hooks'
import { About } from '../../parts/fields.tsx'
import { isOther } from '../../parts/mark.ts'
import { roles } from '../control-state.ts'
import { changeFilters, type Filters, filtersOf, idIn } from '../parts/address.ts'
import { Choice } from '../parts/bits.tsx'
import { taskStatuses } from '../parts/plain-text.tsx'
import { TaskBoard, TaskList } from '../tasks/task-board.tsx'
import { EditTask, NewTask } from '../tasks/task-form.tsx'
import { TaskView } from '../tasks/task-view.tsx'

export function TasksPage({ rest }: { readonly rest: string }) {
  const id = idIn(rest)
  if (id === 'new') return <NewTask parent={filtersOf(rest).parent} />
  if (id.startsWith('TASK-')) return rest.endsWith('/edit') ? <EditTask key={id} id={id} /> : <TaskView key={id} id={id} />
  return <AllTasks filters={filtersOf(rest)} />
}

function AllTasks({ filters }: { readonly filters: Filters }) {
  const { view = filters.status === undefined ? 'board' : 'list', ...asked } = filters
  const set = (change: Filters) => changeFilters('tasks', { view, ...change })
  return (
    <>
      <div class="row spread">
        <h1>Tasks</h1>
        <div class="row">
          <a class="button main" href="#/tasks/new">
            New task
          </a>
        </div>
      </div>
      <About>See who works on what. The board has the newest tasks of each status; the list has all of them.</About>
      <TaskFilters filters={asked} view={view} set={set} />
      {view === 'list' ? <TaskList filters={asked} /> : <TaskBoard filters={asked} />}
    </>
  )
}

type FilterProps = { readonly filters: Filters; readonly view: string; readonly set: (change: Filters) => void }

function TaskFilters({ filters, view, set }: FilterProps) {
  const search = useRef<HTMLInputElement>(null)
  const late = useRef<ReturnType<typeof setTimeout>>(undefined)
  const typed = useRef<Filters>({})
  const soon = (change: Filters) => {
    typed.current = { ...typed.current, ...change }
    clearTimeout(late.current)
    late.current = setTimeout(() => {
      set(typed.current)
      typed.current = {}
    }, 250)
  }
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== '/' || isOther(event)) return
      event.preventDefault()
      search.current?.focus()
    }
    addEventListener('keydown', press)
    return () => {
      removeEventListener('keydown', press)
      clearTimeout(late.current)
    }
  }, [])
  return (
    <search class="filters">
      <input
        ref={search}
        type="search"
        aria-label="Text in title or description"
        placeholder="Title, description"
        maxLength={200}
        defaultValue={filters.q ?? ''}
        onInput={(event) => soon({ q: event.currentTarget.value.trim() })}
      />
      <Choice name="Role" of={roles.value} value={filters.role} set={(role) => set({ role })} />
      {view === 'list' && <Choice name="Status" of={taskStatuses} value={filters.status} set={(status) => set({ status })} />}
      <input
        aria-label="Label"
        placeholder="Label"
        maxLength={64}
        size={10}
        defaultValue={filters.label ?? ''}
        onInput={(event) => soon({ label: event.currentTarget.value.trim() })}
      />
      <fieldset class="row">
        <legend class="hidden">View</legend>
        {['board', 'list'].map((each) => (
          <label class="check" key={each}>
            <input
              type="radio"
              name="view"
              checked={view === each}
              onChange={() => set({ view: each, status: each === 'board' ? '' : (filters.status ?? '') })}
            />{' '}
            {each === 'board' ? 'Board' : 'List'}
          </label>
        ))}
      </fieldset>
    </search>
  )
}

/** Answers "what did they do": the runs, newest first, or one of them with its log, artifacts, session and manifest. */

import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import { About } from '../../parts/fields.tsx'
import { useMark } from '../../parts/mark.ts'
import { agents } from '../control-state.ts'
import { plane, queryOf } from '../net/plane.ts'
import { changeFilters, type Filters, filtersOf, idIn } from '../parts/address.ts'
import { Choice } from '../parts/bits.tsx'
import { usePaged } from '../parts/paged.ts'
import { PagedList } from '../parts/paged-list.tsx'
import { RunRow } from '../runs/run-row.tsx'
import { ControlRunView } from '../runs/run-view.tsx'

const states: { readonly [state in ListedRun['state']]: true } = {
  running: true,
  waiting: true,
  completed: true,
  failed: true,
  released: true,
  lost: true,
  cancelled: true,
}

export function RunsPage({ rest }: { readonly rest: string }) {
  const id = idIn(rest)
  return id.startsWith('RUN-') ? <ControlRunView key={id} id={id} /> : <AllRuns filters={filtersOf(rest)} />
}

function AllRuns({ filters }: { readonly filters: Filters }) {
  const set = (change: Filters) => changeFilters('runs', change)
  const paged = usePaged<ListedRun>({
    key: queryOf(filters),
    load: async (page) => {
      const { runs, next } = await plane<{ runs: readonly ListedRun[]; next: string | null }>(
        'GET',
        `runs${queryOf({ ...filters, ...page })}`,
      )
      return { rows: runs, next }
    },
    one: (id) => plane<ListedRun>('GET', `runs/${id}`),
    idOf: ({ run_id }) => run_id,
    changed: ({ run_id }) => run_id,
  })
  const rows = paged.rows ?? []
  const marked = useMark({
    ids: () => rows.map(({ run_id }) => run_id),
    action: (key, id) => (key === 'Enter' ? () => (location.hash = `#/runs/${id}`) : undefined),
    focuses: true,
  })
  return (
    <>
      <h1>Runs</h1>
      <About>Each time an agent takes a task is a run. It ends well, fails, is given back, or is lost with its lease.</About>
      <search class="filters">
        <Choice name="State" of={Object.keys(states)} value={filters.state} set={(state) => set({ state })} />
        <Choice name="Agent" of={agents.value.map(({ id }) => id)} value={filters.agent_id} set={(agent_id) => set({ agent_id })} />
      </search>
      <PagedList
        paged={paged}
        empty={
          queryOf(filters) === '' ? 'Nothing has run yet: a run begins when the worker of an agent takes a task.' : 'No run is like that.'
        }
      >
        <ul class="list rows" aria-label="Runs">
          {rows.map((run) => (
            <RunRow key={run.run_id} run={run} marked={run.run_id === marked} />
          ))}
        </ul>
      </PagedList>
    </>
  )
}

/** Shows one run: how it ended, its log, what it delivered, and what its agent wrote into its session meanwhile. */

import type { ListedRun, Run, SessionLine } from '../../../../control/contract/run-shapes.ts'
import { About, counted } from '../../parts/fields.tsx'
import { Loaded, useLoadedOn } from '../../parts/loaded.tsx'
import { useMark } from '../../parts/mark.ts'
import { Facts, Part, Table, Tag } from '../../parts/small.tsx'
import { agentPath } from '../actions.tsx'
import { agents } from '../control-state.ts'
import { listenToPlane, plane, queryOf, resumed, root, usePlane } from '../net/plane-live.ts'
import { changeFilters, type Filters, filtersOf, idIn } from '../parts/address.ts'
import { At, Choice, IdHeading, IdLink, RunRow, StateTag, tokensOf } from '../parts/bits.tsx'
import { EventList, SessionLines } from '../parts/event-list.tsx'
import { PagedList, usePaged } from '../parts/paged-list.tsx'
import { JsonBlock, PlainBlock, PlainText } from '../parts/plain-text.tsx'
import { RunLog } from './run-log.tsx'

export function ControlRunView({ id }: { readonly id: string }) {
  const found = usePlane<Run>(`runs/${encodeURIComponent(id)}`, ({ run_id, type }) => run_id === id || type === resumed.type)
  return (
    <>
      <p class="small">
        <a href="#/runs">All runs</a>
      </p>
      <IdHeading id={id} title={found.value?.task_title} />
      <Loaded from={found}>
        {(run) => (
          <>
            <div class="row">
              <StateTag of={run.state} />
              {run.changes !== null && <Tag kind={run.changes === 'waiting' ? 'warn' : ''}>{changeWords[run.changes]}</Tag>}
            </div>
            {run.error !== null && <PlainBlock text={run.error} label="Error" />}
            <RunFacts run={run} />
            <Artifacts run={run} />
            <Part id="log-title" title="Log">
              <RunLog run={run} />
            </Part>
            <Session run={run} />
            {run.manifest !== null && (
              <Part id="manifest-title" title="Manifest">
                <p class="quiet small">
                  The manifest is a signed record of the task, who asked for it, the versions of the programs, and the result.{' '}
                  <code>braidclaw control verify</code> checks it.
                </p>
                <JsonBlock of={run.manifest} label="The manifest as JSON" />
              </Part>
            )}
          </>
        )}
      </Loaded>
      <Part id="history-title" title="History">
        <EventList filters={{ run_id: id }} concerns={({ run_id }) => run_id === id} />
      </Part>
    </>
  )
}

const changeWords = {
  none: 'no changes',
  waiting: 'changes wait for review',
  applied: 'changes applied',
  dropped: 'changes dropped',
} as const

function RunFacts({ run }: { readonly run: Run }) {
  const { task_id, agent_id, role, attempt, began_at, ended_at, last_beat_at, tokens_used, skill } = run
  return (
    <Facts
      of={[
        ['Task', <IdLink id={task_id} />],
        [
          'Agent',
          <>
            <IdLink id={agent_id} />, {role}
          </>,
        ],
        ['Attempt', String(attempt)],
        ['Began', <At time={began_at} />],
        ended_at === null ? ['Last beat', <At time={last_beat_at} />] : ['Ended', <At time={ended_at} />],
        ['Tokens', tokensOf(tokens_used)],
        skill !== null && ['Skill', <PlainText text={skill} />],
      ]}
    />
  )
}

function Artifacts({ run: { run_id, artifacts } }: { readonly run: Run }) {
  if (artifacts.length === 0) return null
  return (
    <Part id="artifacts-title" title="Artifacts">
      <Table label="Names and digests of the artifacts" columns={['Name', { number: 'Size' }, 'SHA-256']}>
        {artifacts.map(({ name, digest, bytes }) => (
          <tr key={name}>
            <th scope="row">
              <a href={`${root}/runs/${run_id}/artifacts/${encodeURIComponent(name)}`} download={name}>
                <PlainText text={name} />
              </a>
            </th>
            <td class="number">{counted(bytes, 'byte')}</td>
            <td class="mono breaks">{digest}</td>
          </tr>
        ))}
      </Table>
    </Part>
  )
}

/** Session lines name no run: those that were written while it ran are its own, as an agent does one task at a time. */
function Session({ run: { agent_id, began_at, ended_at, run_id } }: { readonly run: Run }) {
  const found = useLoadedOn(
    listenToPlane,
    () => plane<{ sessions: readonly SessionLine[] }>('GET', agentPath(agent_id, 'sessions?limit=200')),
    `${run_id} ${ended_at}`,
    (event) => event.run_id === run_id,
  )
  const end = ended_at === null ? Number.POSITIVE_INFINITY : Date.parse(ended_at) + 5_000
  return (
    <Loaded from={found}>
      {({ sessions }) => {
        // The seed's times have no milliseconds.
        const own = sessions.filter(
          ({ timestamp }) => Date.parse(timestamp) >= Date.parse(began_at) - 1_000 && Date.parse(timestamp) <= end,
        )
        if (own.length === 0) return null
        return (
          <Part id="session-title" title="Session">
            <SessionLines of={own} />
          </Part>
        )
      }}
    </Loaded>
  )
}

const states: { readonly [state in ListedRun['state']]: true } = {
  running: true,
  waiting: true,
  completed: true,
  failed: true,
  released: true,
  lost: true,
  cancelled: true,
}

/** Answers "what did they do": the runs, newest first, or one of them with its log, artifacts, session and manifest. */
export function RunsPage({ rest }: { readonly rest: string }) {
  const id = idIn(rest)
  return id.startsWith('RUN-') ? <ControlRunView key={id} id={id} /> : <AllRuns filters={filtersOf(rest)} />
}

function AllRuns({ filters }: { readonly filters: Filters }) {
  const set = (change: Filters) => changeFilters('runs', change)
  const paged = usePaged<ListedRun>({
    key: queryOf(filters),
    load: async (page) => {
      const query = queryOf({ ...filters, ...page })
      const { runs, next } = await plane<{ runs: readonly ListedRun[]; next: string | null }>('GET', `runs${query}`)
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
      <About>Each time an agent takes a task is a run. A run completes, fails, is given back, or is lost with its lease.</About>
      <search class="filters">
        <Choice name="State" of={Object.keys(states)} value={filters.state} set={(state) => set({ state })} />
        <Choice name="Agent" of={agents.value.map(({ id }) => id)} value={filters.agent_id} set={(agent_id) => set({ agent_id })} />
      </search>
      <PagedList
        paged={paged}
        empty={
          queryOf(filters) === '' ? 'No runs yet: a run begins when the worker of an agent takes a task.' : 'No run matches the filters.'
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

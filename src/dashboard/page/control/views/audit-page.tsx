/** Answers "what happened, and can I trust the records": every event, live and back to the first, and how the agents' receipts stand. */

import { useRef } from 'preact/hooks'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { FleetPlane } from '../../../../control/contract/plane.ts'
import { About, counted } from '../../parts/fields.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Part, Table } from '../../parts/small.tsx'
import { agents } from '../control-state.ts'
import { usePlane } from '../net/plane-live.ts'
import { changeFilters, type Filters, filtersOf } from '../parts/address.ts'
import { At, Choice, IdLink } from '../parts/bits.tsx'
import { EventList } from '../parts/event-list.tsx'
import { PlainText } from '../parts/plain-text.tsx'

const names = ['type', 'agent_id', 'task_id', 'run_id'] as const

export function AuditPage({ rest }: { readonly rest: string }) {
  const filters = filtersOf(rest)
  const set = (change: Filters) => changeFilters('audit', change)
  return (
    <>
      <h1>Audit</h1>
      <About>Every change and who made it, newest first. New events appear at once.</About>
      <Receipts />
      <Part id="events-title" title="Events">
        <search class="filters">
          <Words key={`type ${filters.type}`} name="Type" example="task.completed" value={filters.type} set={(type) => set({ type })} />
          <Choice name="Agent" of={agents.value.map(({ id }) => id)} value={filters.agent_id} set={(agent_id) => set({ agent_id })} />
          <Words
            key={`task ${filters.task_id}`}
            name="Task"
            example="TASK-001"
            value={filters.task_id}
            set={(task_id) => set({ task_id })}
          />
          <Words key={`run ${filters.run_id}`} name="Run" example="RUN-001" value={filters.run_id} set={(run_id) => set({ run_id })} />
        </search>
        <EventList filters={filters} concerns={(event) => fits(event, filters)} />
      </Part>
    </>
  )
}

function fits(event: ControlEvent, filters: Filters): boolean {
  return names.every((name) => filters[name] === undefined || filters[name] === '' || event[name] === filters[name])
}

type WordsProps = {
  readonly name: string
  readonly example: string
  readonly value: string | undefined
  readonly set: (value: string) => void
}

/** Takes effect with Enter, or when the field is left. */
function Words({ name, example, value = '', set }: WordsProps) {
  const field = useRef<HTMLInputElement>(null)
  const take = () => {
    const wanted = field.current?.value.trim() ?? ''
    if (wanted !== value) set(wanted)
  }
  return (
    <input
      ref={field}
      aria-label={name}
      placeholder={`${name}, such as ${example}`}
      defaultValue={value}
      maxLength={64}
      onBlur={take}
      onKeyDown={(event) => event.key === 'Enter' && take()}
    />
  )
}

type ReceiptStatus = Awaited<ReturnType<FleetPlane['receipts']>>

function Receipts() {
  const found = usePlane<{ receipts: ReceiptStatus }>('receipts/status', ({ type }) => type.startsWith('agent.'))
  const count = found.value?.receipts.filter(({ receipts }) => receipts !== null).length ?? 0
  return (
    <details>
      <summary>Receipts of {counted(count, 'agent')}</summary>
      <Loaded from={found}>
        {({ receipts }) =>
          receipts.length === 0 ? (
            <Empty>No agent has reported its receipts.</Empty>
          ) : (
            <Table label="Receipts of the agents" columns={['Agent', 'Receipts as it reported them', 'When']}>
              {receipts.map(({ agent_id, receipts: status, reported_at }) => (
                <tr key={agent_id}>
                  <th scope="row">
                    <IdLink id={agent_id} />
                  </th>
                  <td class="breaks">{status === null ? 'nothing yet' : <Pairs of={status} />}</td>
                  <td>
                    <At time={reported_at} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </details>
  )
}

function Pairs({ of }: { readonly of: Readonly<Record<string, unknown>> }) {
  return (
    <>
      {Object.entries(of).map(([name, value]) => (
        <div key={name}>
          <span class="quiet small">{name}</span>{' '}
          <span class="mono">
            <PlainText text={typeof value === 'string' ? value : JSON.stringify(value)} />
          </span>
        </div>
      ))}
    </>
  )
}

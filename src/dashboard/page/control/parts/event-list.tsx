/** Lists what happened, newest first: the history page by page, and what happens now as it comes. */

import { memo } from 'preact/compat'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { SessionLine } from '../../../../control/contract/run-shapes.ts'
import { whole } from '../../parts/fields.tsx'
import { Button, Empty, Problem, Table } from '../../parts/small.tsx'
import { attempt, textOf } from '../../state.ts'
import { listenToPlane, plane, queryOf, resumed } from '../net/plane-live.ts'
import type { Filters } from './address.ts'
import { At, IdLink } from './bits.tsx'
import { After, PlainText } from './plain-text.tsx'

type EventListProps = {
  readonly filters: Filters
  /** Tells whether an event that comes now belongs into this list. */
  readonly concerns: (event: ControlEvent) => boolean
}
type History = { readonly events: readonly ControlEvent[]; readonly next: number | null }

/** New events never make the list longer than this; "Older" does. */
const mostLive = 120
const drawMs = 250

export function EventList({ filters, concerns }: EventListProps) {
  const key = queryOf(filters)
  const [state, setState] = useState<(History & { readonly error?: string }) | undefined>(undefined)
  const fits = useRef(concerns)
  fits.current = concerns
  const load = (before?: number) => plane<History>('GET', `activity${queryOf({ ...filters, limit: 50, before })}`)
  useEffect(() => {
    const leaving = new AbortController()
    const first = async () => {
      try {
        const found = newestFirst(await load())
        if (!leaving.signal.aborted) setState((known) => ({ ...found, events: joined(known?.events ?? [], found.events) }))
      } catch (error) {
        if (!leaving.signal.aborted) setState((known) => ({ events: [], next: null, ...known, error: textOf(error) }))
      }
    }
    setState(undefined)
    void first()
    const end = arriving({
      fits: (event) => fits.current(event),
      show: (fresh) =>
        setState((known) => ({
          next: null,
          ...known,
          events: joined(known?.events ?? [], fresh).slice(0, Math.max(mostLive, known?.events.length ?? 0)),
        })),
      again: () => void first(),
    })
    return () => {
      leaving.abort()
      end()
    }
  }, [key])
  const older = (before: number) =>
    void attempt(async () => {
      const found = newestFirst(await load(before))
      setState((known) => ({ ...found, events: joined(known?.events ?? [], found.events) }))
    })
  if (!state) return <p class="quiet">Loading</p>
  const last = state.events.at(-1)
  return (
    <>
      {state.error !== undefined && <Problem>{state.error}</Problem>}
      {state.events.length === 0 && <Empty>No events yet.</Empty>}
      <ol class="list events">
        {state.events.map((event) => (
          <EventRow key={event.id} event={event} />
        ))}
      </ol>
      {state.next !== null && last && <Button word="Older" on={() => older(last.id)} />}
    </>
  )
}

function newestFirst({ events, next }: History): History {
  return { events: events.toSorted((a, b) => b.id - a.id), next }
}

/** Both are newest first; what is in both stays once. */
function joined(known: readonly ControlEvent[], more: readonly ControlEvent[]): readonly ControlEvent[] {
  const ids = new Set(known.map(({ id }) => id))
  return [...known, ...more.filter(({ id }) => !ids.has(id))].sort((a, b) => b.id - a.id)
}

type Arriving = {
  readonly fits: (event: ControlEvent) => boolean
  readonly show: (fresh: readonly ControlEvent[]) => void
  readonly again: () => void
}

/** Shows what arrives a few times a second, however much it is. @returns a function that ends it */
function arriving({ fits, show, again }: Arriving): () => void {
  const state: { held: ControlEvent[]; late?: ReturnType<typeof setTimeout> } = { held: [] }
  const draw = () => {
    show(state.held)
    state.held = []
    delete state.late
  }
  const end = listenToPlane((event) => {
    if (event.type === resumed.type) again()
    else if (fits(event)) {
      state.held.push(event)
      if (state.held.length > mostLive) state.held.shift()
      state.late ??= setTimeout(draw, drawMs)
    }
  })
  return () => {
    end()
    clearTimeout(state.late)
  }
}

/** An event never changes, so each is drawn once. */
const EventRow = memo(({ event: { id, at, type, actor, task_id, run_id, agent_id, data } }: { readonly event: ControlEvent }) => {
  const words = Object.entries(data)
  return (
    <li class="event">
      <span class="small quiet">
        <At time={at} />
      </span>
      <code>
        <PlainText text={type} />
      </code>
      <span class="row small">
        {task_id !== null && <IdLink id={task_id} />}
        {run_id !== null && <IdLink id={run_id} />}
        {agent_id !== null && <IdLink id={agent_id} />}
      </span>
      <span class="small quiet grow">
        <PlainText text={actor} />
        <After text={words.map(([name, value]) => `${name} ${shown(value)}`).join(', ')} />
      </span>
      <span class="small quiet mono">{id}</span>
    </li>
  )
})

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text !== undefined && text.length > 200 ? `${text.slice(0, 199)}…` : String(text)
}

/** Shows what an agent wrote into its session, as its next heartbeat will read it. */
export function SessionLines({ of }: { readonly of: readonly SessionLine[] }) {
  return (
    <Table label="Lines of the session" columns={['Time', 'Task', 'Skill', 'Outcome', { number: 'Tokens' }]}>
      {of.map(({ timestamp, task, skill, outcome, tokens_used }, at) => (
        <tr key={at}>
          <td>{Number.isNaN(Date.parse(timestamp)) ? <PlainText text={timestamp} /> : <At time={timestamp} />}</td>
          {[task, skill, outcome].map((text, column) => (
            <td key={column}>
              <PlainText text={text} />
            </td>
          ))}
          <td class="number">{whole(tokens_used)}</td>
        </tr>
      ))}
    </Table>
  )
}

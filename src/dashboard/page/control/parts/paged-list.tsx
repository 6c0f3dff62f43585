/** Shows a list that is loaded page by page, what went wrong with it, and a way to the older rows. */

import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import { Busy, Failed } from '../../parts/loaded.tsx'
import { Button, Empty } from '../../parts/small.tsx'
import { textOf } from '../../state.ts'
import { listenToPlane, resumed } from '../net/plane-live.ts'

type PagedListProps = {
  readonly paged: Pick<Paged<unknown>, 'rows' | 'next' | 'error' | 'more' | 'again'>
  readonly empty: string
  readonly children: ComponentChildren
}

export function PagedList({ paged: { rows, next, error, more, again }, empty, children }: PagedListProps) {
  return (
    <>
      {error !== undefined && <Failed error={error} again={again} />}
      {rows === undefined && error === undefined && <Busy />}
      {rows !== undefined && (rows.length === 0 ? <Empty>{empty}</Empty> : children)}
      {typeof next === 'string' && <Button word="Older" on={more} />}
    </>
  )
}

/** Loads a list page by page, newest first, and keeps the rows that are shown up to date without losing the place. */
export type Rows<Row> = { readonly rows: readonly Row[]; readonly next: string | null }

type Listing<Row> = {
  /** Another key is another list. */
  readonly key: string
  readonly load: (page: { readonly after?: string; readonly limit: number }) => Promise<Rows<Row>>
  readonly one: (id: string) => Promise<Row>
  readonly idOf: (row: Row) => string
  /** The id of the row that the event is about, even when it is not shown; undefined: none. */
  readonly changed: (event: ControlEvent) => string | undefined | null
}

type Paged<Row> = Partial<Rows<Row>> & { readonly error?: string; readonly more: () => void; readonly again: () => void }

const pageSize = 50
/** More changed rows than this are loaded together. */
const single = 10
const restMs = 700

export function usePaged<Row>(listing: Listing<Row>): Paged<Row> {
  const [state, setState] = useState<Partial<Rows<Row>> & { readonly error?: string; readonly key?: string }>({})
  const latest = useRef({ state, listing })
  latest.current = { state, listing }
  const run = useCallback((work: (now: Partial<Rows<Row>>, of: Listing<Row>) => Promise<Rows<Row>>) => {
    const { listing: of } = latest.current
    const isSame = () => latest.current.listing.key === of.key
    return work(latest.current.state, of).then(
      (rows) => isSame() && setState({ ...rows, key: of.key }),
      (error: unknown) => isSame() && setState((before) => ({ ...before, error: textOf(error), key: of.key })),
    )
  }, [])
  const again = useCallback(() => void run((_, of) => of.load({ limit: pageSize })), [])
  const more = useCallback(() => void run(appended), [])
  useEffect(() => {
    if (latest.current.state.key !== undefined && latest.current.state.key !== listing.key) setState({})
    again()
    return keepingUp({
      changed: (event) => latest.current.listing.changed(event),
      refresh: (ids) => run((now, of) => renewed(now, of, ids)),
    })
  }, [listing.key])
  return { ...state, more, again }
}

async function appended<Row>({ rows = [], next }: Partial<Rows<Row>>, { load, idOf }: Listing<Row>): Promise<Rows<Row>> {
  const page = await load({ limit: pageSize, ...(typeof next === 'string' ? { after: next } : {}) })
  const known = new Set(rows.map(idOf))
  return { ...page, rows: [...rows, ...page.rows.filter((row) => !known.has(idOf(row)))] }
}

/** Loads the first page again. The rows below it stay, and those that changed are loaded. */
async function renewed<Row>(now: Partial<Rows<Row>>, of: Listing<Row>, ids: ReadonlySet<string>): Promise<Rows<Row>> {
  const { rows = [], next } = now
  const first = await of.load({ limit: pageSize })
  const last = first.rows.at(-1)
  // A search may find nothing on its first page, and more behind it.
  const older =
    last === undefined ? (first.next === null ? [] : rows) : rows.filter((row) => numberOf(of.idOf(row)) < numberOf(of.idOf(last)))
  if (older.length === 0 || first.next === null) return first
  const stale = older.filter((row) => ids.has(of.idOf(row)))
  if (stale.length > single) return all(of, rows.length)
  const fresh = new Map(await Promise.all(stale.map(async (row) => [of.idOf(row), await of.one(of.idOf(row))] as const)))
  return { ...first, rows: [...first.rows, ...older.map((row) => fresh.get(of.idOf(row)) ?? row)], next: next ?? null }
}

async function all<Row>(of: Listing<Row>, count: number): Promise<Rows<Row>> {
  let found: Rows<Row> = await of.load({ limit: 200 })
  while (found.next !== null && found.rows.length < count) {
    const page = await of.load({ limit: 200, after: found.next })
    found = { ...found, rows: [...found.rows, ...page.rows], next: page.next }
  }
  return found
}

function numberOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('-') + 1))
}

type Keeping = {
  readonly changed: (event: ControlEvent) => string | undefined | null
  readonly refresh: (ids: ReadonlySet<string>) => Promise<unknown>
}

/** Collects what changed and loads it together, and rests between two loads. @returns a function that ends it */
export function keepingUp({ changed, refresh }: Keeping): () => void {
  const state = { ids: new Set<string>(), late: undefined as ReturnType<typeof setTimeout> | undefined, busy: false, last: 0, ended: false }
  const plan = () => {
    if (state.ended || state.busy || state.late !== undefined || state.ids.size === 0) return
    state.late = setTimeout(go, Math.max(100, state.last + restMs - performance.now()))
  }
  const go = async () => {
    const { ids } = state
    Object.assign(state, { ids: new Set<string>(), late: undefined, busy: true })
    await refresh(ids)
    Object.assign(state, { busy: false, last: performance.now() })
    plan()
  }
  const end = listenToPlane((event) => {
    const id = event.type === resumed.type ? 'all' : changed(event)
    if (typeof id !== 'string') return
    state.ids.add(id)
    plan()
  })
  return () => {
    end()
    state.ended = true
    clearTimeout(state.late)
  }
}

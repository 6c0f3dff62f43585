/** Loads what a page shows, again when something happened that concerns it, and says so while it loads or fails. */

import { useSignalEffect } from '@preact/signals'
import type { ComponentChildren, ComponentProps } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call } from '../net/api.ts'
import { connection, type Listeners, type Live, listen } from '../net/live.ts'
import { textOf } from '../state.ts'
import { Button, Empty, Part } from './small.tsx'

export type Loading<T> = { readonly value?: T; readonly error?: string; readonly again: () => void }

/** Loads what the gateway answers to a GET. `concerns` says which events make the answer stale; several in a row load once. */
export function useAnswer<T>(path: string, concerns?: (live: Live) => boolean): Loading<T> {
  return useLoadedOn(listen, () => call<T>('GET', path), path, concerns)
}

type LoadState<T> = { readonly value?: T; readonly error?: string; readonly unreachable?: boolean }

/** Loads again when `key` changes, and after the events of `listenTo` that `concerns` names. */
export function useLoadedOn<T, E>(
  listenTo: Listeners<E>['listen'],
  load: () => Promise<T>,
  key: string,
  concerns?: (event: E) => boolean,
): Loading<T> {
  const [state, setState] = useState<LoadState<T>>({})
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn((now) => now + 1), [])
  useEffect(() => {
    let current = true
    load().then(
      (value) => current && setState({ value }),
      (error: unknown) => current && setState((before) => failed(before, error)),
    )
    return () => {
      current = false
    }
  }, [key, turn])
  useEffect(() => (concerns ? staleOn(listenTo, { concerns, again, afterMs: 150 }) : undefined), [key])
  const latest = useRef(state)
  latest.current = state
  useSignalEffect(() => {
    if (connection.value === 'live' && latest.current.unreachable) again()
  })
  return { ...state, again }
}

/** Keeps the known value on the page while the server does not answer. */
function failed<T>({ value }: LoadState<T>, error: unknown): LoadState<T> {
  const unreachable = error instanceof ApiError && error.status === 0
  const known = value === undefined ? {} : { value }
  return unreachable && value !== undefined ? { ...known, unreachable } : { ...known, error: textOf(error), unreachable }
}

type Staleness<E> = { readonly concerns: (event: E) => boolean; readonly again: () => void; readonly afterMs: number }

/** Calls `again` after the events that concern it; several in a row do it once. @returns a function that ends it */
export function staleOn<E>(listenTo: Listeners<E>['listen'], { concerns, again, afterMs }: Staleness<E>): () => void {
  let late: ReturnType<typeof setTimeout> | undefined
  const end = listenTo((event) => {
    if (late !== undefined || !concerns(event)) return
    late = setTimeout(() => {
      late = undefined
      again()
    }, afterMs)
  })
  return () => {
    end()
    clearTimeout(late)
  }
}

export function Loaded<T>({ from, children }: { readonly from: Loading<T>; readonly children: (value: T) => ComponentChildren }) {
  if (from.error !== undefined) return <Failed error={from.error} again={from.again} />
  if (from.value === undefined) return <Busy />
  return <>{children(from.value)}</>
}

type LoadedListProps<T, Row> = {
  readonly from: Loading<T>
  readonly of: (value: T) => readonly Row[]
  /** Says that there are no rows; absent: nothing is shown then. */
  readonly empty?: string
  /** The heading above the rows. */
  readonly part?: Pick<ComponentProps<typeof Part>, 'id' | 'title'>
  /** Absent: the rows stand by themselves. */
  readonly list?: 'ul' | 'ol'
  /** The class of the list, besides its own. */
  readonly kind?: string
  readonly children: (row: Row) => ComponentChildren
}

/** Shows each row of what is loaded. */
export function LoadedList<T, Row>({ from, of, empty, part, list: List, kind = '', children }: LoadedListProps<T, Row>) {
  return (
    <Loaded from={from}>
      {(value) => {
        const rows = of(value).map((row) => children(row))
        if (rows.length === 0) return empty === undefined ? null : <Empty>{empty}</Empty>
        const all = List === undefined ? rows : <List class={`list ${kind}`}>{rows}</List>
        return part ? <Part {...part}>{all}</Part> : all
      }}
    </Loaded>
  )
}

export function Failed({ error, again }: { readonly error: string; readonly again: () => void }) {
  return (
    <div class="card bad" role="alert">
      <p>{error}</p>
      <Button word="Try again" on={again} />
    </div>
  )
}

export function Busy() {
  return (
    <p class="quiet" aria-busy="true">
      Loading
    </p>
  )
}

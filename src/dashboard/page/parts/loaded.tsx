/** Loads what a page shows, again when something happened that concerns it, and says so while it loads or fails. */

import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { type Live, listen } from '../net/live.ts'
import { textOf } from '../state.ts'

export type Loading<T> = { readonly value?: T; readonly error?: string; readonly again: () => void }

/** `concerns` says which events make the value stale; several in a row load once. */
export function useLoaded<T>(load: () => Promise<T>, key: string, concerns?: (live: Live) => boolean): Loading<T> {
  const [state, setState] = useState<{ readonly value?: T; readonly error?: string }>({})
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn((now) => now + 1), [])
  useEffect(() => {
    let current = true
    load().then(
      (value) => current && setState({ value }),
      (error: unknown) => current && setState((before) => ({ ...before, error: textOf(error) })),
    )
    return () => {
      current = false
    }
  }, [key, turn])
  useEffect(() => {
    if (!concerns) return
    let late: ReturnType<typeof setTimeout> | undefined
    const end = listen((live) => {
      if (!concerns(live) || late !== undefined) return
      late = setTimeout(() => {
        late = undefined
        again()
      }, 150)
    })
    return () => {
      end()
      clearTimeout(late)
    }
  }, [key])
  return { ...state, again }
}

export function Loaded<T>({ from, children }: { readonly from: Loading<T>; readonly children: (value: T) => ComponentChildren }) {
  if (from.error !== undefined)
    return (
      <div class="card bad" role="alert">
        <p>{from.error}</p>
        <button type="button" onClick={from.again}>
          Try again
        </button>
      </div>
    )
  if (from.value === undefined)
    return (
      <p class="quiet" aria-busy="true">
        Loading
      </p>
    )
  return <>{children(from.value)}</>
}

/** Moves a mark over a list by keys and acts on the marked entry; one that takes the place of another is first read, then answered. */

import { signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

/** Tells whether single keys act. People who use speech input, or hit keys by accident, turn them off. */
export const keysOn = signal(localStorage.getItem('keys') !== 'off')

/** An entry that takes the place of an answered one must not be answered by a key that was meant for that one. */
const unreadMs = 400

type Marking = {
  /** The ids of the entries as they are now. */
  readonly ids: () => readonly string[]
  /** Returns the action of the key for this entry; undefined: the key does nothing. */
  readonly action: (key: string, id: string) => (() => unknown) | undefined
  /** The mark is also the keyboard focus: entries have `data-mark` with their id, and `tabIndex` -1. */
  readonly focuses?: boolean
}

type Mark = { readonly id: string; readonly at: number }

/** Returns the id of the marked entry. One that goes passes the mark to the entry that takes its place. */
export function useMark({ ids, action, focuses = false }: Marking): string | undefined {
  const mark = useSignal<Mark>({ id: '', at: 0 })
  const id = ids()[placeOf(mark.value, ids())]
  const now = useRef({ ids, action })
  now.current = { ids, action }
  const shown = useRef({ at: 0, hadFocus: false, isMoving: false })
  useLayoutEffect(() => {
    shown.current.at = performance.now()
    if (!focuses || !shown.current.hadFocus || document.activeElement !== document.body) return
    // The focus comes to an entry that the person has not chosen, and perhaps not read.
    shown.current.isMoving = true
    focusOn(id)
    shown.current.isMoving = false
  }, [id])
  useEffect(() => {
    const go = (wanted: number) => {
      const known = now.current.ids()
      mark.value = markAt(known, wanted)
      if (focuses) focusOn(mark.value.id)
    }
    // Reads the mark as it is now: two keys may come before the page is drawn again.
    const press = (event: KeyboardEvent) => {
      if (isOther(event) || !keysOn.value) return
      const known = now.current.ids()
      const at = placeOf(mark.value, known)
      const current = known[at]
      if (event.key === 'j') go(mark.value.id === '' && focuses ? 0 : at + 1)
      else if (event.key === 'k') go(at - 1)
      else if (current !== undefined) {
        const act = now.current.action(event.key, current)
        const isRead = current === mark.value.id || performance.now() - shown.current.at >= unreadMs
        if (!act || !isRead) return
        event.preventDefault()
        mark.value = markAt(known, at)
        act()
      }
    }
    const focused = ({ target }: FocusEvent) => {
      const entry = target instanceof Element ? target.closest('[data-mark]')?.getAttribute('data-mark') : undefined
      shown.current.hadFocus = typeof entry === 'string'
      const at = typeof entry === 'string' ? now.current.ids().indexOf(entry) : -1
      if (at >= 0 && !shown.current.isMoving) mark.value = markAt(now.current.ids(), at)
    }
    addEventListener('keydown', press)
    if (focuses) addEventListener('focusin', focused)
    return () => {
      removeEventListener('keydown', press)
      removeEventListener('focusin', focused)
    }
  }, [])
  return id
}

function placeOf({ id, at }: Mark, ids: readonly string[]): number {
  const known = ids.indexOf(id)
  return known >= 0 ? known : Math.min(at, ids.length - 1)
}

function markAt(ids: readonly string[], wanted: number): Mark {
  const at = Math.max(0, Math.min(wanted, ids.length - 1))
  return { id: ids[at] ?? '', at }
}

function focusOn(id: string | undefined): void {
  if (id === undefined) return
  const entry = document.querySelector<HTMLElement>(`[data-mark="${CSS.escape(id)}"]`)
  entry?.focus({ preventScroll: true })
  entry?.scrollIntoView({ block: 'nearest' })
}

/** Tells whether the key belongs to a field, a dialog, a button or the browser. */
export function isOther(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return true
  const { target } = event
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('dialog')) return true
  return (event.key === 'Enter' || event.key === ' ') && /^(A|BUTTON|SUMMARY)$/.test(target.tagName)
}

/** Defines P13 (who sends what), P14 (the program always accepts a stop) and P16 (no mode without its checks). */

import type { Property } from '../../kernel/property.ts'
import { EXTERNAL } from '../../kernel/select.ts'
import type { RunEvent } from '../event.ts'
import { externalTypes } from '../external-types.ts'

export const onlyTheWorldAnswers: Property<RunEvent, { readonly forged: boolean }> = {
  name: 'Starts, replies, results, decisions, stops and the clock come from outside; no thread makes one up.',
  init: { forged: false },
  next: (monitor, { event, source }) => (source !== EXTERNAL && Object.hasOwn(externalTypes, event.type) ? { forged: true } : monitor),
  violated: ({ forged }) => forged,
}

type Stops = { readonly cancelled: boolean; readonly stopped: boolean; readonly over: boolean }

/** A cancel has no effect after an emergency stop; an emergency stop still has one after a cancel. */
export const stopsGetThrough: Property<RunEvent, Stops> = {
  name: 'Until one came or the run is over, an emergency stop and a cancel are accepted; a halt that is asked for happens.',
  init: { cancelled: false, stopped: false, over: false },
  next(monitor, { event }) {
    if (event.type === 'cancel') return { ...monitor, cancelled: true }
    if (event.type === 'estop') return { ...monitor, stopped: true }
    return event.type === 'finish' ? { ...monitor, over: true } : monitor
  },
  atQuiescence({ cancelled, stopped, over }, { offers, blocked }) {
    if (blocked.some(({ event }) => event.type === 'halt')) return true
    if (stopped || over) return false
    const takes = (type: RunEvent['type']) => offers.some((offer) => offer.type === type)
    return !takes('estop') || !(cancelled || takes('cancel'))
  },
}

export const noModeWithoutChecks: Property<RunEvent, { readonly unchecked: boolean }> = {
  name: 'No run is put into wiggum mode before there are checks that could end it.',
  init: { unchecked: false },
  next: (monitor, { event }) => (event.type === 'mode.set' && event.mode === 'wiggum' ? { unchecked: true } : monitor),
  violated: ({ unchecked }) => unchecked,
}

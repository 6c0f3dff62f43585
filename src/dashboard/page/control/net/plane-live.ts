/** Follows the events of the control plane with one connection for all tabs of the browser: a browser opens only six to one server. */

import { effect } from '@preact/signals'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import { call, type Method } from '../../net/api.ts'
import { connection, followEvents, listeners } from '../../net/live.ts'
import { type Loading, useLoadedOn } from '../../parts/loaded.tsx'

/** Calls the routes of the control plane that served this page, and follows its events. */
export const root = '/api/controlplane'

/** @throws ApiError */
export function plane<T>(method: Method, path: string, body?: unknown, headers?: HeadersInit): Promise<T> {
  return call<T>(method, `${root}/${path}`, body, headers)
}

/** Distributes the events of the control plane. */
export const { listen: listenToPlane, tell: tellOfPlane } = listeners<ControlEvent>()

/** Loads what the control plane answers to a GET, as `useAnswer` does for a gateway. */
export function usePlane<T>(path: string, concerns?: (event: ControlEvent) => boolean): Loading<T> {
  return useLoadedOn(listenToPlane, () => plane<T>('GET', path), path, concerns)
}

/** Returns `?a=1&b=2` for the values that are there. */
export function queryOf(values: { readonly [name: string]: string | number | boolean | undefined }): string {
  const known = Object.entries(values).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, String(value)]]))
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}

type TabMessage =
  | { readonly kind: 'event'; readonly event: ControlEvent }
  | { readonly kind: 'state'; readonly state: 'live' | 'lost' | 'out'; readonly last: string }
  /** `connected`: the leading tab has a new connection, so what happened right before it may be unknown. */
  | { readonly kind: 'hello' | 'again' | 'connected' }

const path = `${root}/events`
const nudgeMs = 2_000

/** Sent to all listeners when the connection is back: everything that is shown may be old. */
export const resumed: ControlEvent = {
  id: 0,
  at: '',
  type: 'page.resumed',
  actor: '',
  task_id: null,
  run_id: null,
  agent_id: null,
  role: null,
  data: {},
}

/** Follows until the signal aborts or the session ends. `connected` is called each time the connection is there. */
export async function followPlane(leaving: AbortSignal, connected: () => void): Promise<void> {
  const position = { last: '', times: 0 }
  const arrived = () => {
    connected()
    position.times += 1
    if (position.times > 1) tellOfPlane(resumed)
  }
  // Only secure addresses have locks; elsewhere each tab has its own connection.
  if (!('locks' in navigator)) return followEvents({ path, leaving, connected: arrived, told: tellOfPlane })
  const tabs = new BroadcastChannel('braidclaw-control')
  const say = (message: TabMessage) => tabs.postMessage(message)
  const endNudges = nudging(say)
  leaving.addEventListener('abort', () => {
    endNudges()
    tabs.close()
  })
  tabs.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind === 'event') {
      position.last = String(data.event.id)
      tellOfPlane(data.event)
    } else if (data.kind === 'state') {
      if (data.last !== '') position.last = data.last
      connection.value = data.state
      if (data.state === 'live' && position.times === 0) arrived()
    } else if (data.kind === 'connected') arrived()
  }
  say({ kind: 'hello' })
  await navigator.locks
    .request('braidclaw-control-events', { signal: leaving }, () => lead({ tabs, say, leaving, arrived, position }))
    .catch((error: unknown) => {
      if (!leaving.aborted) throw error
    })
}

type Leading = {
  readonly tabs: BroadcastChannel
  readonly say: (message: TabMessage) => void
  readonly leaving: AbortSignal
  readonly arrived: () => void
  readonly position: { last: string }
}

/** Holds the connection in this tab and passes its events to the other tabs. */
async function lead({ tabs, say, leaving, arrived, position }: Leading): Promise<void> {
  const tellState = () => {
    if (connection.value !== 'off' && !leaving.aborted) say({ kind: 'state', state: connection.value, last: position.last })
  }
  tabs.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind === 'hello') tellState()
    // The timers of a hidden tab are slow; a tab that is seen asks to try again now.
    if (data.kind === 'again') dispatchEvent(new Event('online'))
  }
  const end = effect(tellState)
  try {
    await followEvents<ControlEvent>({
      path,
      leaving,
      connected() {
        arrived()
        say({ kind: 'connected' })
      },
      last: position.last,
      told: (event) => {
        position.last = String(event.id)
        say({ kind: 'event', event })
        tellOfPlane(event)
      },
    })
  } finally {
    end()
  }
}

function nudging(say: (message: TabMessage) => void): () => void {
  const timer = setInterval(() => {
    if (connection.value === 'lost' && !document.hidden) say({ kind: 'again' })
  }, nudgeMs)
  return () => clearInterval(timer)
}

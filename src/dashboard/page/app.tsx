/** Shows the login, or the frame with the pages: navigation, the emergency stop, and what is wrong with the connection. */

import { useSignalEffect } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call } from './net/api.ts'
import { connection, follow, listen } from './net/live.ts'
import type { Me } from './shapes.ts'
import { approvals, attempt, may, me, notice, place, refresh, status, stopped } from './state.ts'
import { Cost } from './views/cost.tsx'
import { Login } from './views/login.tsx'
import { Memory } from './views/memory.tsx'
import { Now } from './views/now.tsx'
import { Proof } from './views/proof.tsx'
import { Runs } from './views/runs.tsx'
import { Schedules } from './views/schedules.tsx'
import { Talk } from './views/talk.tsx'
import { Tools } from './views/tools.tsx'

/** One row per page; each answers the question in `about`. */
const pages: readonly { readonly path: string; readonly name: string; readonly View: ComponentType<{ readonly rest: string }> }[] = [
  { path: '', name: 'Now', View: Now },
  { path: 'talk', name: 'Talk', View: Talk },
  { path: 'runs', name: 'Runs', View: Runs },
  { path: 'memory', name: 'Memory', View: Memory },
  { path: 'tools', name: 'Tools and rules', View: Tools },
  { path: 'schedules', name: 'Schedules', View: Schedules },
  { path: 'cost', name: 'Cost', View: Cost },
  { path: 'proof', name: 'Proof', View: Proof },
]

export function App() {
  useEffect(() => void whoAmI(), [])
  if (me.value === undefined) return <Waiting />
  return me.value === null || connection.value === 'out' ? <Login /> : <Frame />
}

async function whoAmI(): Promise<void> {
  try {
    me.value = await call<Me>('GET', '/session')
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.value = null
    else setTimeout(() => void whoAmI(), 1_000)
  }
}

function Waiting() {
  return (
    <main class="login">
      <h1>BraidClaw</h1>
      <p class="quiet working" role="status">
        Asking the server who you are
      </p>
    </main>
  )
}

function Frame() {
  // A page loads after the events are followed, so that nothing happens unseen in between.
  const [isReady, setReady] = useState(false)
  useEffect(() => {
    const leaving = new AbortController()
    const connected = () => {
      setReady(true)
      void refresh()
    }
    void follow(leaving.signal, connected)
    const end = refreshing()
    return () => {
      leaving.abort()
      end()
    }
  }, [])
  const [path = '', ...rest] = place.value.split('/')
  const page = pages.find((each) => each.path === path) ?? pages[0]
  const main = useRef<HTMLElement>(null)
  useSignalEffect(() => {
    document.title = `${approvals.value.length > 0 ? `(${approvals.value.length}) ` : ''}BraidClaw`
  })
  if (!page || !isReady) return <Waiting />
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="side">
        <span class="brand">BraidClaw</span>
        <nav aria-label="Pages">
          {pages.map((each) => (
            <a
              href={`#/${each.path}`}
              aria-current={each === page ? 'page' : undefined}
              ref={(link) => {
                if (each === page) link?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
              }}
            >
              {each.name}
              {each.path === '' && approvals.value.length > 0 && (
                <span class="count">
                  {approvals.value.length} <span class="hidden">waiting</span>
                </span>
              )}
            </a>
          ))}
        </nav>
        <div class="foot">
          <span class="small quiet" role="status">
            {connection.value === 'lost' ? 'Connection lost' : connection.value === 'live' ? 'Live' : 'Connecting'}
          </span>
          <Estop />
          <button type="button" class="small" onClick={() => void leave()}>
            Log out
          </button>
        </div>
      </header>
      <div>
        {connection.value === 'lost' && (
          <div class="banner warn" role="alert">
            The server does not answer. This page goes on by itself when it is back.
          </div>
        )}
        {stopped.value && (
          <div class="banner" role="alert">
            Emergency stop: no tool runs ({status.value?.estop.reason}).
          </div>
        )}
        <Notice />
        <main id="main" ref={main} tabIndex={-1}>
          <page.View rest={rest.join('/')} />
        </main>
      </div>
    </div>
  )
}

/** Good news goes away by itself. */
function Notice() {
  const told = notice.value
  const close = () => {
    if (notice.value === told) notice.value = undefined
  }
  useEffect(() => {
    if (!told || told.bad) return
    const late = setTimeout(close, 4_000)
    return () => clearTimeout(late)
  }, [told])
  if (!told) return null
  return (
    <div class={told.bad ? 'banner toast' : 'banner toast good'} role={told.bad ? 'alert' : 'status'}>
      {told.text}{' '}
      <button type="button" class="link" onClick={close}>
        Close
      </button>
    </div>
  )
}

/** Refreshes what every page shows when it may have changed; several events in a row do it once. @returns a function that ends it */
function refreshing(): () => void {
  const state: { late?: ReturnType<typeof setTimeout> } = {}
  const end = listen(({ event }) => {
    if (state.late !== undefined || !/^(approval_|estop|run_|changes_)/.test(event.type)) return
    state.late = setTimeout(() => {
      delete state.late
      void refresh()
    }, 40)
  })
  return () => {
    clearTimeout(state.late)
    end()
  }
}

function Estop() {
  if (!may('admin')) return null
  const set = !stopped.value
  const act = () =>
    void attempt(async () => {
      if (!set && !confirm('Let tools run again?')) return
      await call('POST', '/estop', set ? { reason: `stopped in the dashboard by ${me.value?.name}` } : { clear: true })
      await refresh()
    })
  return (
    <button type="button" class={set ? 'stop' : 'main'} onClick={act}>
      {set ? 'Stop everything' : 'Lift the stop'}
    </button>
  )
}

async function leave(): Promise<void> {
  await attempt(() => call('DELETE', '/session'))
  me.value = null
}

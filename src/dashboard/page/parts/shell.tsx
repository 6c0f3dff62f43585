/** Shows the frame around every page: navigation, what is wrong with the connection, messages, and the page itself. */

import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { connection } from '../net/live.ts'
import { attempt, me, notice, place } from '../state.ts'
import { Button } from './small.tsx'

export type PageRow = { readonly path: string; readonly name: string; readonly View: ComponentType<{ readonly rest: string }> }

type ShellProps = {
  readonly brand: string
  readonly pages: readonly PageRow[]
  /** How much waits for the person; shown beside the first page. */
  readonly waiting: number
  readonly foot?: ComponentChildren
  readonly banners?: ComponentChildren
}

export function Shell({ brand, pages, waiting, foot, banners }: ShellProps) {
  const main = useRef<HTMLElement>(null)
  const { path, rest } = partsOf(place.value)
  const page = pages.find((each) => each.path === path) ?? pages[0]
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${brand}`
  }, [waiting, brand])
  if (!page) return null
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="side">
        <span class="brand">{brand}</span>
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
              {each.path === '' && waiting > 0 && (
                <span class="count">
                  {waiting} <span class="hidden">waiting</span>
                </span>
              )}
            </a>
          ))}
        </nav>
        <div class="foot">
          <span class="small quiet" role="status">
            {connection.value === 'lost' ? 'Connection lost' : connection.value === 'live' ? 'Live' : 'Connecting'}
          </span>
          {foot}
          <Button word="Log out" kind="small" on={() => leave()} />
        </div>
      </header>
      <div>
        {connection.value === 'lost' && (
          <div class="banner warn" role="alert">
            The server does not answer. This page continues by itself when the server is back.
          </div>
        )}
        {banners}
        <Notice />
        <main id="main" ref={main} tabIndex={-1}>
          <page.View rest={rest} />
        </main>
      </div>
    </div>
  )
}

/** "tasks/TASK-001" and "tasks?status=dead" both belong to the page "tasks". */
function partsOf(address: string): { readonly path: string; readonly rest: string } {
  const [, path = '', rest = ''] = /^([^/?]*)\/?(.*)$/s.exec(address) ?? []
  return { path, rest }
}

/** Success messages disappear after a while. */
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
      {told.text} <Button word="Close" kind="link" on={close} />
    </div>
  )
}

async function leave(): Promise<void> {
  await attempt(() => call('DELETE', '/session'))
  me.value = null
}

/** Shows that the page is connecting, until it follows the events of its server. */
export function Waiting({ brand, what }: { readonly brand: string; readonly what: string }) {
  return (
    <main class="login">
      <h1>{brand}</h1>
      <p class="quiet working" role="status">
        {what}
      </p>
    </main>
  )
}

/**
 * Tells whether the events are followed: a page loads after that, so that nothing happens unseen in between. `begin` calls `connected` at each
 * connection, and returns what ends what it began besides.
 */
export function useFollowing(begin: (leaving: AbortSignal, connected: () => void) => () => void): boolean {
  const [isReady, setReady] = useState(false)
  useEffect(() => {
    const leaving = new AbortController()
    const end = begin(leaving.signal, () => setReady(true))
    return () => {
      leaving.abort()
      end()
    }
  }, [])
  return isReady
}

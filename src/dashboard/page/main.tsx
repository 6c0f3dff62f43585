/** Starts the dashboard in the browser. */

import { options, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ControlFrame } from './control/control-frame.tsx'
import { visible } from './control/parts/plain-text.tsx'
import { ApiError, call } from './net/api.ts'
import { connection, follow, type Live, listen } from './net/live.ts'
import { staleOn } from './parts/loaded.tsx'
import { type PageRow, Shell, useFollowing, Waiting } from './parts/shell.tsx'
import { Button, Submit } from './parts/small.tsx'
import type { Me } from './shapes.ts'
import { approvals, attempt, may, me, notice, place, refresh, status, stopped, textOf } from './state.ts'
import { Cost } from './views/cost.tsx'
import { Memory } from './views/memory.tsx'
import { Now } from './views/now.tsx'
import { Procedures } from './views/procedures.tsx'
import { Proof } from './views/proof.tsx'
import { Runs } from './views/run.tsx'
import { Schedules } from './views/schedules.tsx'
import { Servers } from './views/servers.tsx'
import { Talk } from './views/talk.tsx'
import { Tools } from './views/tools.tsx'

/** One row per page; each answers the question in `about`. */
const pages: readonly PageRow[] = [
  { path: '', name: 'Now', View: Now },
  { path: 'talk', name: 'Talk', View: Talk },
  { path: 'runs', name: 'Runs', View: Runs },
  { path: 'memory', name: 'Memory', View: Memory },
  { path: 'tools', name: 'Tools and rules', View: Tools },
  { path: 'servers', name: 'MCP servers', View: Servers },
  { path: 'schedules', name: 'Schedules', View: Schedules },
  { path: 'procedures', name: 'Procedures', View: Procedures },
  { path: 'cost', name: 'Cost', View: Cost },
  { path: 'proof', name: 'Proof', View: Proof },
]

const root = document.getElementById('app')
showHidden()
if (root) render(<App />, root)
addEventListener('hashchange', () => {
  place.value = location.hash.slice(2)
  notice.value = undefined
  scrollTo(0, 0)
})

/** Makes every text and label of the page show characters that hide or turn text around: texts of models and tools are everywhere. */
function showHidden(): void {
  const before = options.vnode
  options.vnode = (vnode) => {
    const { type, props }: { readonly type: unknown; props: unknown } = vnode
    if (type === null && typeof props === 'string') Object.assign(vnode, { props: visible(props) })
    else if (typeof type === 'string')
      for (const name of ['title', 'aria-label', 'placeholder'] as const) {
        const labels = props as { [label: string]: unknown }
        const label = labels[name]
        if (typeof label === 'string') labels[name] = visible(label)
      }
    before?.(vnode)
  }
}

/** Shows the login, or the frame with the pages of the server that answers: a gateway or a control plane. */
function App() {
  useEffect(() => void whoAmI(), [])
  if (me.value === undefined) return <Waiting brand="BraidClaw" what="Asking the server who you are" />
  if (me.value === null || connection.value === 'out') return <Login />
  return me.value.server === 'control' ? <ControlFrame /> : <Frame />
}

async function whoAmI(): Promise<void> {
  try {
    me.value = await call<Me>('GET', '/session')
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.value = null
    else setTimeout(() => void whoAmI(), 1_000)
  }
}

function Frame() {
  const isReady = useFollowing((leaving, connected) => {
    void follow(leaving, () => {
      connected()
      void refresh()
    })
    return staleOn(listen, { concerns: concernsAll, again: () => void refresh(), afterMs: 40 })
  })
  if (!isReady) return <Waiting brand="BraidClaw" what="Connecting" />
  const banner = stopped.value && (
    <div class="banner" role="alert">
      Emergency stop: no tool runs ({status.value?.estop.reason}).
    </div>
  )
  return <Shell brand="BraidClaw" pages={pages} waiting={approvals.value.length} foot={<Estop />} banners={banner} />
}

/** Tells whether an event may have changed what every page shows. */
function concernsAll({ event }: Live): boolean {
  return /^(approval_|estop|run_|changes_|procedure_)/.test(event.type)
}

function Estop() {
  if (!may('admin')) return null
  const set = !stopped.value
  const act = () =>
    attempt(async () => {
      if (!set && !confirm('Let tools run again?')) return
      await call('POST', '/estop', set ? { reason: `stopped in the dashboard by ${me.value?.name}` } : { clear: true })
      await refresh()
    })
  return <Button word={set ? 'Stop everything' : 'Lift the stop'} kind={set ? 'stop' : 'main'} on={act} />
}

/** Asks for a token once; the browser then keeps a session that scripts cannot read. */
function Login() {
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const token = String(new FormData(form).get('token') ?? '').trim()
    setBusy(true)
    try {
      await call('POST', '/session', { token })
      connection.value = 'off'
      me.value = await call<Me>('GET', '/session')
    } catch (error) {
      setProblem(textOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login">
      <h1>BraidClaw</h1>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          <label for="token">Access token</label>
          <input
            id="token"
            name="token"
            type="password"
            ref={field}
            autocomplete="current-password"
            required
            aria-describedby="token-help"
          />
        </p>
        <p id="token-help" class="quiet small">
          Of a control plane: the operator token that <code>braidclaw control init</code> showed and keeps in{' '}
          <code>control/operator.token</code>. Of any other server: make one on its machine with{' '}
          <code>braidclaw token new me --scope admin</code>.
        </p>
        {problem !== '' && (
          <p class="banner" role="alert">
            {problem}
          </p>
        )}
        <Submit busy={busy}>Log in</Submit>
      </form>
    </main>
  )
}

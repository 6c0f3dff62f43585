/** Keeps the windows of the glass pane in step with the agents, once or until the signal aborts. It only shows: no run depends on it. */

import { join } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { type PaneStep, planWindows, type WantedWindow } from './plan-windows.ts'
import type { Tmux } from './tmux.ts'

export type PaneOptions = {
  readonly tmux: Tmux
  readonly logDir: string
  /** @returns the ids of the agents that have a window */
  readonly agents: () => Promise<readonly string[]>
}

export type PaneDone = { readonly created: number; readonly respawned: number; readonly closed: number; readonly windows: number }

export async function syncPane({ tmux, logDir, agents }: PaneOptions): Promise<PaneDone> {
  const wanted = [...new Set(await agents())].filter(isAgentName).map((agent) => wantedWindow(agent, logDir))
  const steps = planWindows(wanted, await tmux.windows())
  for (const step of steps) await take(tmux, step)
  const number = (what: PaneStep['do']) => steps.filter((step) => step.do === what).length
  return { created: number('create'), respawned: number('respawn'), closed: number('close'), windows: wanted.length }
}

export type PaneWatch = PaneOptions & {
  readonly signal: AbortSignal
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly changed: (done: PaneDone) => void
  /** Takes what failed this time; it is tried again. */
  readonly failed: (message: string) => void
}

const everyMs = 2_000

export async function watchPane({ signal, sleep, changed, failed, ...options }: PaneWatch): Promise<void> {
  let said = ''
  while (!signal.aborted) {
    try {
      const done = await syncPane(options)
      if (done.created + done.respawned + done.closed > 0) changed(done)
      said = ''
    } catch (error) {
      const message = errorText(error)
      if (message !== said) failed(message)
      said = message
    }
    await sleep(everyMs, signal)
  }
}

async function take(tmux: Tmux, step: PaneStep): Promise<void> {
  if (step.do === 'create') await tmux.create(step.window)
  else if (step.do === 'respawn') await tmux.respawn(step.id, step.window)
  else await tmux.close(step.id)
}

/** The names that the control plane gives; the name of a log file that is none of them gets no window. */
export function isAgentName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)
}

function wantedWindow(agent: string, logDir: string): WantedWindow {
  const path = join(logDir, `${agent}.log`)
  return { agent, path, log: sha256(path).slice(0, 16) }
}

/** Creates the sandbox that the settings ask for. It never falls back by itself to a weaker sandbox, or to none. */

import { withRepairs } from './afterwards.ts'
import { createBubblewrap } from './bubblewrap/bubblewrap.ts'
import type { Created, SandboxSettings, Spawn } from './confinement.ts'
import { notLinux } from './install.ts'
import { resolvePlaces } from './protect/places.ts'
import { withoutMounts } from './readable.ts'

/**
 * Never throws because of a missing system feature: `missing` says what to install or change. Only `kind: 'none'` runs commands unconfined.
 */
export async function createSandbox(settings: SandboxSettings): Promise<Created> {
  if (settings.kind === 'none') {
    return {
      ok: true,
      sandbox: {
        name: 'none',
        describe: () => ['none: commands run with all the rights of this user'],
        spawn: withMode({ spawn: (plan) => settings.spawnPlain(withoutMounts(plan)), refusal: 'nothing confines it' }),
      },
    }
  }
  if (process.platform !== 'linux') return { ok: false, missing: notLinux }
  const resolved = resolvePlaces(settings)
  if (!resolved.ok) return resolved
  const making = { settings, places: resolved.places }
  const created = await (settings.kind === 'landlock'
    ? (await import('./landlock/landlock.ts')).createLandlock(making)
    : createBubblewrap(making))
  if (!created.ok) return created
  const names = created.sandbox.name === 'bubblewrap' && !settings.without?.includes('protected paths')
  const { workspace } = resolved.places
  const spawn = withRepairs({ workspace, spawn: created.sandbox.spawn, log: settings.log, names })
  const refusal = created.sandbox.name === 'landlock' ? 'Landlock makes no mounts' : undefined
  return { ok: true, sandbox: { ...created.sandbox, spawn: withMode({ spawn, refusal }) } }
}

type Viewing = { readonly spawn: Spawn; readonly refusal?: string }

/** Names the mode of each command that can write; `refusal` says why this sandbox has no private views. */
function withMode({ spawn, refusal }: Viewing): Spawn {
  return async (plan) => {
    if (plan.readOnly) return spawn(plan)
    if (plan.view === 'private' && refusal !== undefined)
      return { ok: false, message: `the command cannot have a private view of the workspace: ${refusal}` }
    const ended = await spawn(plan)
    return ended.ok ? { ...ended, mode: ended.view === undefined ? 'direct' : 'transaction' } : ended
  }
}

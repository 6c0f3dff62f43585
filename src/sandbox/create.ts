/** Chooses a sandbox that works on this machine. There is no silent way down to none. */

import { createBubblewrap } from './bubblewrap.ts'
import { createLandlock } from './landlock.ts'
import { resolvePlaces } from './places.ts'
import type { Created, SandboxSettings } from './port.ts'

/** Never throws for what a machine lacks: `missing` says what to install or change. Only `kind: 'none'` runs commands unconfined. */
export async function createSandbox(settings: SandboxSettings): Promise<Created> {
  if (settings.kind === 'none') {
    return {
      ok: true,
      sandbox: { name: 'none', describe: () => ['none: commands run with all the rights of this user'], spawn: settings.spawnPlain },
    }
  }
  if (process.platform !== 'linux') return { ok: false, missing: `sandbox: ${process.platform} has none that we know; run on Linux` }
  const resolved = resolvePlaces(settings)
  if (!resolved.ok) return resolved
  const making = { settings, places: resolved.places }
  if (settings.kind === 'landlock') return await createLandlock(making)
  const first = await createBubblewrap(making)
  if (first.ok || settings.kind === 'bubblewrap') return first
  const second = await createLandlock(making)
  if (!second.ok) return { ok: false, missing: `${first.missing}; ${second.missing}` }
  settings.log('warn', 'sandbox: landlock instead of bubblewrap, which protects less', { missing: first.missing })
  return second
}

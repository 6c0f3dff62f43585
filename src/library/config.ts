/** Types the `braidclaw.config.ts` of a project, which src/config/layers/ reads. Exported as `braidclaw/config`. */

import type { z } from 'zod'
import type { programShape } from '../config/layers/evaluate-program.ts'

/** `sandbox.limits.timeout` is in milliseconds, `memory` in bytes; the rest of `sandbox` holds when `enabled` is true. */
export type BraidClawConfig = z.input<typeof programShape>
export type MCPServerConfig = NonNullable<NonNullable<BraidClawConfig['mcp']>['servers']>[number]

/** Returns the same object, checked by the compiler. */
export function defineConfig<const Config extends BraidClawConfig>(config: Config): Config {
  return config
}

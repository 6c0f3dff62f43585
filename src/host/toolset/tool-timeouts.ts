/** Says how long each tool may run. */

import type { Tool } from '../../runtime/port.ts'
import type { ExecutorOptions } from '../../tools/run-tool.ts'
import type { Setup } from '../api.ts'
import { shellTimesOf } from '../setup/run-limits.ts'

/** Returns each tool's timeout in milliseconds, and the setting that raises it. */
export function timeoutsOf({ config: { limits } }: Setup, tools: readonly Tool[]): NonNullable<ExecutorOptions['timeouts']> {
  const { longestS } = shellTimesOf(limits)
  const usual = { seconds: limits.toolTimeoutS, advice: 'limits.tool_timeout_s' }
  const special: { readonly [tool: string]: typeof usual } = {
    shell: {
      seconds: limits.shellTimeoutS,
      advice: `limits.shell_timeout_s; a call may ask for "timeout" up to ${longestS} s, limits.shell_timeout_max_s`,
    },
    http: { seconds: limits.httpTimeoutS, advice: 'limits.http_timeout_s' },
  }
  const limitOf = (name: string) => (Object.hasOwn(special, name) ? special[name] : undefined) ?? usual
  return Object.fromEntries(
    tools
      .filter(({ name }) => name !== 'ask_user')
      .map(({ name }) => [name, { ms: limitOf(name).seconds * 1000, advice: limitOf(name).advice }]),
  )
}

/** Who thinks and who has the tools: ourselves, or whoever sits at the other end of a pair of FIFOs. */

import { join } from 'node:path'
import { createFifoProvider } from '../../providers/fifo/provider.ts'
import type { Provider } from '../../runtime/port.ts'
import { createExchange, type Exchange } from '../../service/fifo/exchange.ts'
import { createClaw } from '../../tools/claw.ts'
import { builtInNames, type ToolSource, type ToolWish, tenTools } from '../toolbox.ts'
import type { Setup } from '../world.ts'

/** What a brain may take for one answer, its own tries included, and a claw for one call. */
const BRAIN_MS = 300_000
const CLAW_MS = 25_000

/** Absent: the configured provider answers. */
export function fifoBrain(dir: string): { readonly provider: Provider; readonly exchange: Exchange } {
  const exchange = exchangeIn(dir, 'brain', BRAIN_MS)
  return { provider: createFifoProvider({ name: 'fifo', ask: exchange.ask }), exchange }
}

/** The claw's tools, beside our ten or in their place. What is wrong with them is said when it changes. */
export function clawTools(
  setup: Setup,
  { dir, alone }: { readonly dir: string; readonly alone: boolean },
): { readonly tools: ToolWish; readonly exchange: Exchange } {
  const exchange = exchangeIn(dir, 'claw', CLAW_MS)
  return { tools: { ...(alone ? { builtIn: [] } : tenTools), more: clawSource(setup, exchange) }, exchange }
}

function clawSource({ config, log }: Setup, { ask }: Exchange): ToolSource {
  const state: { look?: ReturnType<typeof createClaw>; told: string } = { told: '' }
  return async ({ maxOutputBytes }) => {
    state.look ??= createClaw({
      ask,
      builtIn: builtInNames,
      riskOf: (name) => (config.security.allowTools.includes(name) ? 'low' : 'medium'),
      maxOutputBytes,
    })
    const { tools, refused } = await state.look(new AbortController().signal)
    if (refused.join('\n') !== state.told) for (const why of refused) log('warn', 'claw tool refused', { why })
    state.told = refused.join('\n')
    return tools
  }
}

function exchangeIn(dir: string, name: 'brain' | 'claw', timeoutMs: number): Exchange {
  return createExchange({ requestPath: join(dir, `${name}_in`), answerPath: join(dir, `${name}_out`), timeoutMs })
}

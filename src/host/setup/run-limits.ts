/** Derives the limits of a run from the configuration. */

import type { Config } from '../../config/config.ts'
import type { ChannelCap } from '../../runtime/behaviours/guards/channel.ts'
import type { ModelWindow } from '../../runtime/port.ts'
import type { RunLimits } from '../../runtime/program.ts'
import type { ShellTimes } from '../../tools/tool-kind.ts'
import { type ChannelProfile, isLimited } from '../access/channel-profile.ts'

/** @param access the channel that the run comes from, if it limits what a run may do */
export function runLimits({ limits, proofOfDone }: Config, access?: ChannelProfile): RunLimits {
  const { maxToolRounds, maxSameResults, maxParallel, maxRunSeconds, maxRunTokens, maxRunUsd } = limits
  return {
    maxToolRounds,
    maxSameResults,
    maxParallel,
    ...(maxRunSeconds ? { maxMs: maxRunSeconds * 1000 } : {}),
    ...(maxRunTokens ? { maxTokens: maxRunTokens } : {}),
    ...(access !== undefined && isLimited(access) ? { channel: capOf(access) } : {}),
    ...(proofOfDone === 'require' ? { requireProof: true } : {}),
    ...(maxRunUsd === undefined ? {} : { maxMicros: Math.round(maxRunUsd * 1_000_000) }),
  }
}

function capOf({ channel, tools, level }: ChannelProfile): ChannelCap {
  return { name: channel, ...(tools ? { tools } : {}), ...(level === 'readonly' ? { readonly: true } : {}) }
}

/** The most tokens of history when `limits.context_tokens` is not set. */
const usualHistory = 128_000

/** The largest part of the window that earlier turns may take. */
const historyPart = 0.4

/** Returns how many tokens of earlier turns to send, in tokens of the plain estimate. */
export function historyTokens({ limits }: Config, { tokens, scale }: Pick<ModelWindow, 'tokens' | 'scale'>): number {
  return Math.floor(Math.min(limits.contextTokens ?? usualHistory, tokens() * historyPart) / scale())
}

/** A command may always ask for the usual time, even when the configured maximum is lower. */
export function shellTimesOf({ shellTimeoutS, shellTimeoutMaxS }: Config['limits']): ShellTimes {
  return { usualS: shellTimeoutS, longestS: Math.max(1, Math.floor(Math.max(shellTimeoutS, shellTimeoutMaxS))) }
}

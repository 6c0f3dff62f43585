/** Shares the loaded setup, provider, policy and rules among conversations with equal settings. */

import { sha256 } from '../../kit/sha256.ts'
import type { Provider } from '../../runtime/port.ts'
import type { SandboxKind } from '../../sandbox/contract.ts'
import type { Trial } from '../../sandbox/trial.ts'
import type { Policy } from '../../security/policy.ts'
import type { Setup } from '../api.ts'
import { sandboxState } from '../toolset/sandbox/command-sandbox.ts'
import type { LoadedRules } from './operator-rules.ts'
import { providerFor, type SharedProviders } from './provider-pool.ts'
import { hasRules, type RuleSetup } from './setup.ts'

export type Profile = {
  /** The setup of the first conversation with these settings. */
  readonly setup: Setup
  /** Returns the configured provider; after a failure the next caller tries again. @throws FailureError `provider` */
  provider(): Promise<Provider>
  /** Returns the provider that reads pictures. @throws FailureError `provider` */
  visionProvider(): Promise<Provider>
  /** Returns whether commands can be confined; checks again after a while. */
  sandbox(kind?: SandboxKind): Promise<Trial>
  /** Returns the policy for the present file system; the same object while nothing has changed. */
  policy(): Promise<Policy>
  /** Takes the rules just read; returns the earlier objects while their text is the same. */
  rules(read: LoadedRules): LoadedRules
}

export type Profiles = {
  /** Returns one profile for setups that are equal in configuration, environment, folder and log receiver. */
  of(setup: Setup): Profile
}

/** How long a successful sandbox check stays valid, in milliseconds: a check costs as much as the rest of a short turn. */
const trustedMs = 5_000

export function createProfiles(shared: SharedProviders): Profiles {
  const bySetup = new Map<Setup, Profile>()
  const byKey = new Map<string, Profile[]>()

  /** Comparing walks through the whole setup, so only the second setup pays for it. */
  function index(profile: Profile): Profile[] {
    const key = keyOf(profile.setup)
    const alike = byKey.get(key) ?? []
    byKey.set(key, alike)
    return alike
  }

  function equalTo(setup: Setup): Profile | undefined {
    if (byKey.size === 0) for (const profile of bySetup.values()) index(profile).push(profile)
    return byKey.get(keyOf(setup))?.find((profile) => profile.setup.context.say === setup.context.say)
  }

  function add(setup: Setup): Profile {
    const profile = createProfile(setup, shared)
    if (bySetup.size > 0) index(profile).push(profile)
    bySetup.set(setup, profile)
    return profile
  }

  return { of: (setup) => bySetup.get(setup) ?? (bySetup.size > 0 ? equalTo(setup) : undefined) ?? add(setup) }
}

function createProfile(setup: Setup, shared: SharedProviders): Profile {
  const state: { provider?: Promise<Provider>; policy?: Policy; rules?: { readonly text: string; readonly read: LoadedRules } } = {}
  const trials = new Map<SandboxKind, { readonly trial: Promise<Trial>; until: number }>()
  return {
    setup,
    provider() {
      state.provider ??= providerFor(setup, setup.config.defaultProvider, shared).catch((error: unknown) => {
        delete state.provider
        throw error
      })
      return state.provider
    },
    async visionProvider() {
      return (await import('./vision-provider.ts')).visionProviderFor(setup, shared)
    },
    sandbox(kind = 'auto') {
      const known = trials.get(kind)
      if (known && performance.now() < known.until) return known.trial
      const fresh = { trial: sandboxState(setup, kind), until: Number.POSITIVE_INFINITY }
      trials.set(kind, fresh)
      fresh.trial.then(
        ({ ok }) => {
          fresh.until = ok ? performance.now() + trustedMs : 0
        },
        () => trials.delete(kind),
      )
      return fresh.trial
    },
    async policy() {
      const { policyOf } = await import('./effective-policy.ts')
      const policy = policyOf(setup.config, setup.paths, setup.context.env, setup.access)
      if (state.policy?.version !== policy.version) state.policy = policy
      return state.policy
    },
    rules(read) {
      const text = JSON.stringify(read.journal ?? {})
      if (state.rules?.text !== text) state.rules = { text, read }
      return state.rules.read
    },
  }
}

function keyOf({ config, origins, paths, context: { env, cwd }, file, assumed, access, ownRules }: Setup): string {
  return sha256(JSON.stringify([config, origins, paths, Object.entries(env).sort(), cwd, file, assumed, access, ownRules]))
}

/** Loads the rules of the operator and the caller; undefined when there are none. @throws FailureError `usage` on an invalid rule */
export async function loadRules(setup: RuleSetup) {
  if (!hasRules(setup)) return undefined
  return (await import('./operator-rules.ts')).rulesInForce(setup)
}

import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { isDeep } from '../../test/support/tier.ts'
import { type Layer, layers, type SandboxSettings } from './contract.ts'
import { createSandbox } from './create-sandbox.ts'
import { shareEtc } from './filesystem/shared-etc.fixture.ts'
import { hasBubblewrap, spawnPlain } from './fixture.ts'
import { install } from './install.ts'
import { prepareGround } from './probe/probe-fixture.ts'
import { attempts, probeSandbox } from './run-probes.ts'

if (!hasBubblewrap()) console.warn(`the probe of bubblewrap is left out: ${install}`)
const real = test.if(hasBubblewrap())

async function probe(more: Partial<SandboxSettings>, only?: readonly string[]) {
  const ground = prepareGround()
  shareEtc(ground.settings.stateHome)
  const created = await createSandbox({ ...ground.settings, kind: 'bubblewrap', spawnPlain, log() {}, ...more })
  if (!created.ok) throw new Error(created.missing)
  const results = await probeSandbox(created.sandbox, { ground, only })
  created.sandbox.close?.()
  ground.remove()
  expect(existsSync(ground.settings.workspace)).toBe(false)
  return results
}

/** Lists what each layer's removal must let through. Layers that stop the same attempt do so one after another. */
const escapes: { readonly [layer in Layer]: readonly string[] } = {
  'mount namespace': [
    "change one of the user's tools",
    'write a file next to the workspace',
    'read a key in ~/.ssh',
    'delete a folder outside with find',
  ],
  'protected paths': [
    'plant a git hook before a repository exists',
    'change a repository: its settings, its hooks, the whole of it',
    'write start-up and editor files',
  ],
  'hidden files': ['read a secret file in the workspace, also after moving its folder away'],
  'unread files': ['read a file that nobody reads, by name, search and copy'],
  'refused programs': ['run a forbidden command by another spelling'],
  'small /etc': ['see the users and services of this machine'],
  'network namespace': ['reach a server by name', 'reach a server by address'],
  'pid namespace': ['see a process outside', 'kill a process outside', 'outlive the command in a session of its own'],
  'ipc namespace': ['read shared memory of a process outside'],
  'nested namespaces': ['make a user namespace'],
  seccomp: ['reach a socket in the workspace', 'make a pair of sockets that can send to any other'],
  limits: [
    'fork without end',
    'take memory without end',
    'take memory with several processes that each stay below the limit',
    'write a file without end',
  ],
  environment: ['read the environment that started the sandbox'],
}

/** The system-call filter and this layer stop the same: each alone suffices. */
const doubled: readonly Layer[] = ['nested namespaces']

describe('every layer matters: without it', () => {
  const some: readonly Layer[] = ['mount namespace', 'unread files', 'seccomp', 'environment']

  real.each((isDeep ? layers : some).map((layer) => [layer]))('%s the probe gets through', async (layer) => {
    const results = await probe({ without: doubled.includes(layer) ? [layer, 'seccomp'] : [layer] }, escapes[layer])
    expect(results.filter(({ skipped }) => !skipped).map(({ attempt, stopped, layer }) => ({ attempt, stopped, layer }))).toEqual(
      results.filter(({ skipped }) => !skipped).map(({ attempt }) => ({ attempt, stopped: false, layer: 'none' })),
    )
    expect(results.some(({ stopped, skipped }) => !stopped && !skipped)).toBe(true)
  })
})

real('either of the two layers that stop user namespaces is enough', async () => {
  const attempt = escapes['nested namespaces']
  expect(await probe({ without: ['seccomp'] }, attempt)).toMatchObject([{ stopped: true, layer: 'nested namespaces' }])
  expect(await probe({ without: doubled }, attempt)).toMatchObject([{ stopped: true, layer: 'seccomp' }])
})

real('a program with rights that the filter lets through is repaired afterwards', async () => {
  const attempt = ['leave a program that has your rights, whoever starts it']
  expect(await probe({ without: ['seccomp'] }, attempt)).toMatchObject([{ stopped: true, layer: 'repair afterwards' }])
  expect(await probe({}, attempt)).toMatchObject([{ stopped: true, layer: 'seccomp' }])
})

real(
  'with all layers every attempt is stopped, by the layer whose removal lets it through',
  async () => {
    const results = await probe({})
    expect(results).toHaveLength(attempts.length)
    expect(results.filter(({ stopped, skipped }) => !stopped && !skipped)).toEqual([])
    expect(results.length).toBeGreaterThanOrEqual(15)
    for (const layer of layers.filter((layer) => !doubled.includes(layer))) {
      const stoppedBy = results.filter(({ attempt, skipped }) => escapes[layer].includes(attempt) && !skipped).map(({ layer }) => layer)
      expect(new Set(stoppedBy)).toEqual(new Set([layer]))
    }
    expect(JSON.stringify(results)).not.toContain('canary-')
  },
  120_000,
)

test('without any sandbox the probe finds its way out, and hurts only its own canaries', async () => {
  const only = [
    'read a key in ~/.ssh',
    'read the key of the receipts',
    'delete a folder outside with find',
    'write a file next to the workspace',
    'see a process outside',
  ]
  const results = await probe({ kind: 'none' }, only)
  expect(results.map(({ stopped }) => stopped)).toEqual([false, false, false, false, false])
})

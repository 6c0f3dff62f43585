/** Finds out how children can be confined on this machine, and says what that does and does not hold. */

import { fixedPath } from '../../../sandbox/install.ts'
import { relayProblem } from './control-relay.ts'

/**
 * `bubblewrap`: namespaces and mounts of its own. `setpriv`: the kernel kills the child when the worker dies. `group`: a guard process
 * kills the child's group when the worker dies.
 */
export type ConfinementWay = 'bubblewrap' | 'setpriv' | 'group'

export type Confinement = {
  readonly way: ConfinementWay
  /** The program of the way; absent for `group`. */
  readonly program?: string
  /** `control`: the child reaches the control plane and nothing else. */
  readonly network: 'control' | 'host'
  /** What holds, for a person: one line each. */
  readonly holds: readonly string[]
}

export type ConfinementQuestion = {
  readonly apiUrl: string
  readonly network: 'control' | 'host'
  readonly find?: (program: string) => string | undefined
}

const systemProgram = (program: string) => Bun.which(program, { PATH: fixedPath }) ?? undefined

export async function findConfinement({ apiUrl, network, find = systemProgram }: ConfinementQuestion): Promise<Confinement> {
  const bubblewrap = find('bwrap')
  if (bubblewrap !== undefined && (await works(bubblewrap)))
    return confined({ bubblewrap, apiUrl, network, hasSocat: find('socat') !== undefined })
  const setpriv = find('setpriv')
  const why = bubblewrap === undefined ? 'bubblewrap is not installed' : 'bubblewrap does not work here'
  const common = [`${why}: the child may read and write whatever this user may`, 'network: open']
  if (setpriv !== undefined)
    return {
      way: 'setpriv',
      program: setpriv,
      network: 'host',
      holds: ['processes: the kernel kills the child with the worker', ...common],
    }
  return { way: 'group', network: 'host', holds: ["processes: a guard kills the child's group with the worker", ...common] }
}

type Confining = {
  readonly bubblewrap: string
  readonly apiUrl: string
  readonly network: 'control' | 'host'
  readonly hasSocat: boolean
}

function confined({ bubblewrap, apiUrl, network, hasSocat }: Confining): Confinement {
  const open = openBecause({ apiUrl, network, hasSocat })
  const holds = [
    'processes: a PID namespace of its own, which ends with the worker',
    'files: it writes only to its copy of the workspace and to its own folder; home folders are not visible',
    open === undefined ? 'network: only the control plane' : `network: open, because ${open}`,
  ]
  return { way: 'bubblewrap', program: bubblewrap, network: open === undefined ? 'control' : 'host', holds }
}

function openBecause({ apiUrl, network, hasSocat }: Omit<Confining, 'bubblewrap'>): string | undefined {
  if (network === 'host') return '--network host asks for it'
  if (!hasSocat) return 'the program socat is not installed'
  return relayProblem(apiUrl)
}

/** An installed program does not prove that the kernel lets it work. */
async function works(bubblewrap: string): Promise<boolean> {
  const trial = ['--unshare-user', '--unshare-pid', '--unshare-net', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']
  try {
    const child = Bun.spawn([bubblewrap, ...trial, '--', '/bin/sh', '-c', ':'], { env: {}, stdio: ['ignore', 'ignore', 'ignore'] })
    return (await child.exited) === 0
  } catch {
    return false
  }
}

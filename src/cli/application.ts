/** The frame round the commands: name, version, spelling, exit codes, and the words for a wrong command line. */

import { buildApplication, buildRouteMap, type RouteMap } from '@stricli/core'
import { version } from '../../package.json'
import { agent } from './routes/agent.ts'
import { exitOf } from './trouble.ts'
import { wording } from './wording.ts'
import type { CliContext } from './world.ts'

/** `words` are those of the command line, which decide how a wrong one is answered. */
export function applicationOf(root: RouteMap<CliContext>, words: readonly string[]) {
  return buildApplication<CliContext>(root, {
    name: 'braidclaw',
    versionInfo: { currentVersion: version },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true, distanceOptions: closeEnough },
    documentation: {
      caseStyle: 'convert-camel-to-kebab',
      useAliasInUsageLine: false,
      onlyRequiredInUsageLine: true,
      disableAnsiColor: true,
    },
    determineExitCode: (error) => exitOf(error).code,
    localization: { text: wording(words) },
  })
}

/** For command lines that begin with `agent`: the other forty commands take longer to build than a turn's own code takes to load. */
export function agentApp(words: readonly string[]) {
  return applicationOf(buildRouteMap<string, CliContext>({ routes: { agent }, docs: { brief: 'agent' } }), words)
}

/** A suggestion must be one slip away, or it misleads. */
const closeEnough = { threshold: 3, weights: { insertion: 1, deletion: 3, substitution: 2, transposition: 0 } } as const

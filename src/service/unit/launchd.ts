/** Runs us as a launchd agent of the user. The format of the file: launchd.plist(5). */

import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { textIn } from '../../kit/proc.ts'
import { mustRun, type RunProgram, type ServiceManager, type ServiceRun, type ServiceState, stopSeconds, writeUnit } from './service-run.ts'

const label = 'com.braidclaw.serve'

export type LaunchdOptions = {
  /** The user's home folder. */
  readonly userHome: string
  readonly uid: number
  readonly run: RunProgram
  readonly exists: (path: string) => boolean
  /** Where the service writes its log. */
  readonly logPath: string
}

export function launchdManager({ userHome, uid, run, exists, logPath }: LaunchdOptions): ServiceManager {
  const file = `${userHome}/Library/LaunchAgents/${label}.plist`
  const [domain, target] = [`gui/${uid}`, `gui/${uid}/${label}`]
  const ask = (...words: readonly string[]) => mustRun(run, ['launchctl', ...words])
  return {
    kind: 'launchd',
    file,
    text: launchdPlist,
    argv: () => argvIn(textIn(file)),
    async install(given) {
      mkdirSync(dirname(file), { recursive: true })
      writeUnit(file, launchdPlist(given))
      await ask('enable', target)
    },
    async start() {
      await run(['launchctl', 'bootout', target])
      await ask('bootstrap', domain, file)
    },
    stop: async () => void (await ask('bootout', target)),
    async uninstall() {
      await run(['launchctl', 'bootout', target])
      rmSync(file, { force: true })
    },
    async state() {
      const { code, stdout } = await run(['launchctl', 'print', target])
      return stateIn(exists(file), code === 0 ? stdout : '')
    },
    log: () => ({ path: logPath }),
  }
}

/** RunAtLoad starts it at login; KeepAlive starts it again when it failed. */
export function launchdPlist({ argv, env, folder, logPath }: ServiceRun): string {
  const entries: readonly (readonly [string, string])[] = [
    ['Label', string(label)],
    ['ProgramArguments', `<array>${argv.map(string).join('')}</array>`],
    [
      'EnvironmentVariables',
      `<dict>${Object.entries(env)
        .map(([name, value]) => `<key>${xml(name)}</key>${string(value)}`)
        .join('')}</dict>`,
    ],
    ['WorkingDirectory', string(folder)],
    ['RunAtLoad', '<true/>'],
    ['KeepAlive', '<dict><key>SuccessfulExit</key><false/></dict>'],
    ['ThrottleInterval', '<integer>10</integer>'],
    ['ExitTimeOut', `<integer>${stopSeconds}</integer>`],
    ['Umask', `<integer>${0o077}</integer>`],
    ['ProcessType', string('Background')],
    ['StandardErrorPath', string(`${logPath}.crash`)],
  ]
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
${entries.map(([key, value]) => `  <key>${key}</key>${value}\n`).join('')}</dict>
</plist>
`
}

function string(text: string): string {
  return `<string>${xml(text)}</string>`
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** The reverse of what `launchdPlist` writes. */
function argvIn(text: string): readonly string[] | undefined {
  const array = /<key>ProgramArguments<\/key><array>(.*?)<\/array>/s.exec(text)?.[1]
  return array?.match(/(?<=<string>)[^<]*/g)?.map((word) => word.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&'))
}

function stateIn(installed: boolean, printed: string): ServiceState {
  const pid = Number(/^\s*pid = (\d+)$/m.exec(printed)?.[1] ?? 0)
  const restarts = Number(/^\s*runs = (\d+)$/m.exec(printed)?.[1] ?? 1) - 1
  return { installed, running: pid > 0, pid: pid || undefined, restarts: restarts > 0 ? restarts : undefined }
}

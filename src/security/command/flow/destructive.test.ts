import { describe, expect, test } from 'bun:test'
import { destructive, isForbidden } from './destructive.ts'
import { literalArg } from './model.ts'

const reasonOf = (command: string) => {
  const [name = '', ...args] = command.split(' ')
  return destructive(
    name,
    args.map((text) => literalArg(text)),
    { cwds: ['/home/u/ws'], cwd: '/home/u/ws', home: '/home/u' },
  )
}

const instead = 'name what is to go; the tool file_delete deletes one file or folder'

describe('never run, because', () => {
  test.each([
    ...['mkfs', 'mkfs.ext4', 'mke2fs', 'mkswap', 'wipefs'].map((name) => [name, `${name} erases a disk`] as const),
    ...['shutdown', 'reboot', 'halt', 'poweroff', 'telinit'].map((name) => [name, `${name} stops the machine`] as const),
    ...['init 0', 'init 6'].map((command) => [command, 'init changes the run level of the machine'] as const),
    ...['reboot', 'poweroff', 'halt', 'kexec', 'rescue', 'emergency', 'suspend', 'hibernate'].map(
      (word) => [`systemctl --now ${word}`, 'systemctl stops the machine'] as const,
    ),
    ...['dd if=x', 'dd bs=1 of=/dev/sda'].map((command) => [command, 'dd copies raw data over whatever is there'] as const),
    ...['777', '0777', 'a+rwx', 'a=rwx', 'arwx', '+rwx', 'ugo+rwx', 'ugo=rwx', '/'].map(
      (mode) => [`chmod -R ${mode} x`, 'chmod -R 777 opens everything to everyone'] as const,
    ),
    ...['-R', '-vR', '-r', '--recursive', '--rec'].map((flag) => [`chown ${flag} a b`, 'chown -R gives everything away'] as const),
    ...['/', '/*', '~', '~/', '~/*', '.', './', '..', '../', '*', '/*', './*', '../*', '../../*', '.*', '/usr', '/usr/', '/usr/*'].map(
      (what) => [`rm -rf ${what}`, `rm -r ${what} removes everything; ${instead}`] as const,
    ),
    ['rm -r -f x --no-preserve-root', `rm -r --no-preserve-root removes everything; ${instead}`],
  ])('%s: %s', (command, reason) => expect(reasonOf(command)).toBe(reason))
})

describe('not destructive by itself:', () => {
  test.each([
    ...['xmkfs', 'mkfsx', 'mkfs-x', 'xmke2fs', 'mkswaps', 'shutdowns', 'xhalt', 'rebooter', 'init', 'init 1', 'init 06', 'init x 0'],
    ...['systemctl status', 'systemctl xreboot', 'systemctl reboots', 'service reboot', 'dd bs=1', 'dd of=x', 'dd xif=y', 'dd x=of=/dev/y'],
    ...[
      'chmod 777 x',
      'chmod -R 755 x',
      'chmod -R 1777 x',
      'chmod -R 7770 x',
      'chmod -R a+rw x',
      'chmod -R x+rwx y',
      'chmod -R /x',
      'chmod -v 777 x',
    ],
    ...[
      'chown a b',
      'chown x-R b',
      'chown --reference x',
      'rm x',
      'rm *',
      'rm /',
      'rm -f /',
      'rm -r x',
      'rm -r ./x',
      'rm -r ../x',
      'rm -r /usr/lib',
    ],
    ...[
      'rm -r x/',
      'rm -r x*',
      'rm -r ~x',
      'rm -r ...',
      'rm -r x--no-preserve-root',
      'rm -r --no-preserve-rootx',
      'rm -r /usr/*x',
      'rm x-r /',
    ],
  ])('%s', (command) => expect(reasonOf(command)).toBeUndefined())
})

test('mkfs stands for all its kinds, and nothing else for anything but itself', () => {
  expect([isForbidden('mkfs.ext4', ['mkfs']), isForbidden('mkfs', ['mkfs']), isForbidden('rm', ['mkfs', 'rm'])]).toEqual([true, true, true])
  expect([isForbidden('mkfs.ext4', ['rm']), isForbidden('mkfsx', ['mkfs']), isForbidden('rm.x', ['rm'])]).toEqual([false, false, false])
})

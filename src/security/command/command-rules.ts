/** Lists every rule that allows a command, rates it high or blocks it, each with one line. */

export const commandRules = {
  'command.allowed': 'Every command in it is allow-listed and does nothing beyond that.',
  'command.nul': 'A NUL byte ends the text for one program and not for the next.',
  'command.hidden': 'Control, text-direction or invisible characters make the text read differently from what it does.',
  'command.unparseable': 'The text is not complete, valid shell.',
  'command.limit': 'The text is larger, deeper or more branched than is looked through.',
  'command.forbidden': 'A command of forbidden_commands stands somewhere in it.',
  'command.destructive': 'It matches a pattern that destroys data or stops the machine, whatever forbidden_commands lists.',
  'command.fork_bomb': 'A function starts itself again and again in the background or in a pipe.',
  'command.download_to_shell': 'Something downloaded would be executed unseen.',
  'command.not_allowed': 'A command in it is not on the allow list.',
  'command.dynamic': 'Which command runs is known only when it runs.',
  'command.unclear': 'An argument that decides what is read, written or run is known only when it runs.',
  'command.option': 'An option or argument lets an allow-listed tool run programs or change more than it should.',
  'command.environment': 'A variable is set that decides which programs run or how.',
  'command.code': 'A shell, interpreter or builtin would run code that is not looked through.',
  'command.privilege': 'It asks for the rights of another user.',
  'command.shadows': 'A function or alias takes the name of a command.',
} as const

export type CommandRule = keyof typeof commandRules

// An ACP agent as a model of the AI SDK. Run by `test_ai_sdk.py`: `ai_sdk.mjs FOLDER AGENT CWD PROMPT…`.
// FOLDER is where the packages lie, AGENT the command as JSON. Prints each part of each answer as a line of JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, agent, cwd, ...prompts] = process.argv.slice(2);
const find = createRequire(pathToFileURL(`${folder}/package.json`));
const { createACPProvider } = find("@mcpc-tech/acp-ai-provider");
const { streamText } = find("ai");
const [command, ...args] = JSON.parse(agent);
const provider = createACPProvider({ command, args, session: { cwd, mcpServers: [] }, persistSession: true });

function plain(_key, value) {
  return value instanceof Error ? { message: value.message } : value;
}

for (const prompt of prompts) {
  const model = provider.languageModel();
  const answer = streamText({ model, prompt, tools: provider.tools, maxRetries: 0, onError: () => {} });
  for await (const part of answer.fullStream) {
    console.log(JSON.stringify(part, plain));
    if (part.type === "error") break; // behind which this provider never ends its stream
  }
}
provider.cleanup();

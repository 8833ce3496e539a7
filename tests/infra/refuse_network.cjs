// Loaded into every Node process of a synthesis: a connection fails, and is told in the named file.
const { appendFileSync } = require("node:fs");
const { Socket } = require("node:net");

const log = process.env.RUNTALLY_NETWORK_LOG;
appendFileSync(log, "armed\n");
Socket.prototype.connect = (...target) => {
  appendFileSync(log, `connect ${JSON.stringify(target)}\n`);
  throw new Error("synthesis opened a connection");
};
